"""The grammar: JavaScript's operators and precedence over JSON values, with filters.

From loose to tight: `? :`, `??`, `||`, `&&`, equality, relation, `+ -`, `* / %`, prefix `! - +`, filters `|`,
members and calls. So `a ?? b || c` is `a ?? (b || c)`, which JavaScript leaves open, and a filter binds
tighter than any operator: `a ?? b | uppercase` filters `b` alone, `!a | length` is `!(a | length)`; brackets
say otherwise.

A hyphen between name characters belongs to the name, so subtraction needs spaces. A name may begin with
digits if it is no number. After a dot any name goes, digits too (`a.0`), with a version behind `@` if need be
(`component.prompt@v2`). In a filter's arguments a word that stands alone is text: `x | default(none)`;
`(none)` is the name.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lark import Lark

if TYPE_CHECKING:
    from lark import Transformer

GRAMMAR = r"""
start: expression
?expression: coalesce
    | coalesce QUESTION expression COLON expression       -> ternary
?coalesce: either
    | coalesce COALESCE either                             -> choice
?either: both
    | either OR both                                       -> choice
?both: equality
    | both AND equality                                    -> choice
?equality: relation
    | equality EQUALITY relation                           -> binary
?relation: sum
    | relation RELATION sum                                -> binary
?sum: product
    | sum SIGN product                                     -> binary
?product: unary
    | product FACTOR unary                                 -> binary
?unary: filtered
    | (NOT | SIGN) unary                                   -> unary
?filtered: postfix
    | filtered BAR NAME                                    -> filter
    | filtered BAR NAME OPEN _arguments? CLOSE             -> filter
?postfix: primary
    | postfix (DOT | MAYBE) MEMBER                         -> member
    | postfix (DOT | MAYBE) MEMBER OPEN _arguments? CLOSE  -> method
    | postfix MAYBE? LIST_OPEN expression LIST_CLOSE       -> index
?primary: NAME                                             -> name
    | NAME OPEN _arguments? CLOSE                          -> call
    | NULL                                                 -> null
    | TRUE                                                 -> true
    | FALSE                                                -> false
    | NUMBER                                               -> number
    | STRING                                               -> string
    | OPEN expression CLOSE                                -> brackets
    | LIST_OPEN (expression (COMMA expression)* COMMA?)? LIST_CLOSE  -> list
    | OBJECT_OPEN (entry (COMMA entry)* COMMA?)? OBJECT_CLOSE        -> object
_arguments: expression (COMMA expression)*
entry: (KEY | STRING) COLON expression

QUESTION: "?"
COLON: ":"
COALESCE: "??"
OR: "||"
AND: "&&"
EQUALITY: "===" | "!==" | "==" | "!="
RELATION: "<=" | ">=" | "<" | ">"
SIGN: /\+(?!\+)|-(?!-)/
FACTOR: "*" | "/" | "%"
NOT: "!"
BAR: "|"
DOT: "."
MAYBE.2: /\?\.(?![0-9])/
OPEN: "("
CLOSE: ")"
LIST_OPEN: "["
LIST_CLOSE: "]"
OBJECT_OPEN: "{"
OBJECT_CLOSE: "}"
COMMA: ","

NULL.3: /(?:null|undefined)(?![\w$]|-+[\w$])/
TRUE.3: /true(?![\w$]|-+[\w$])/
FALSE.3: /false(?![\w$]|-+[\w$])/
NUMBER.2: /(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w$.])/
STRING: /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/s
NAME: /[0-9]*(?:[^\W\d]|\$)[\w$]*(?:-+[\w$]+)*/
KEY: /[\w$]+(?:-+[\w$]+)*/
MEMBER: /[\w$]+(?:-+[\w$]+)*(?:@(?:v?[0-9]+(?:\.[0-9]+)*|[^\W\d]\w*(?:-+\w+)*))?/

%ignore /\s+/
"""


@cache
def parser(builder: Transformer[Any, Any]) -> Lark:
    """The parser that gives what `builder` makes of the rules. Made on first use, once for each builder."""
    return Lark(GRAMMAR, parser="lalr", lexer="contextual", transformer=builder, maybe_placeholders=False)
