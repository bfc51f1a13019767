"""Asks a real JavaScript what its cases should give: `python tests/expr/node_truth.py` rewrites them.

The tests do not need Node; they read what was written. Run it after adding an operator, an operand or an
expression.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

CASES = Path(__file__).parent.parent / "cases" / "expr"
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "&&", "||", "??"]
PREFIXES = ["!", "!!", "-", "+"]
LOOKS = ["a?.length", "a?.[0]", "a?.[1]", "a?.[-1]", "a?.x", "a?.['x']", "a?.['0']", "a ? 'yes' : 'no'"]

PROGRAM = """
const cases = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const answers = cases.map(([source, scope]) => {
  const value = new Function(...Object.keys(scope), 'return (' + source + ')')(...Object.values(scope));
  return value === undefined ? null : value;
});
console.log(JSON.stringify(answers));
"""


def ask(cases: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What JavaScript gives for each expression with its scope; NaN, infinities and undefined are null."""
    done = subprocess.run(
        ["node", "-e", PROGRAM], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    answers: list[Any] = json.loads(done.stdout)
    return answers


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _table(title: str, pattern: str, signs: list[str], operands: list[Any]) -> list[str]:
    lines = [f"{title}:"]
    for sign in signs:
        source = pattern.replace("@", sign)
        lines.append(f"  - expr: {_line(source)}")
        if "b" in pattern:
            lines.append("    rows:")
            for left in operands:
                row = ask([(source, {"a": left, "b": right}) for right in operands])
                lines.append(f"      - {_line(row)}")
        else:
            lines.append(f"    row: {_line(ask([(source, {'a': value}) for value in operands]))}")
    return lines


def write_operators() -> None:
    path = CASES / "operators.yaml"
    written = YAML(typ="safe", pure=True).load(path)
    operands = written["operands"]
    lines = [
        "# Each operator with each kind of JSON value on each side: a row for each left operand `a`, in it",
        "# a cell for each right operand `b`, in the order of `operands`. By tests/expr/node_truth.py.",
        f"source: JavaScript, node {_version()}; NaN, infinities and undefined are null by semantics 4",
        "operands:",
        *(f"  - {_line(value)}" for value in operands),
        *_table("tables", "a @ b", OPERATORS, operands),
        *_table("prefixes", "@a", PREFIXES, operands),
        *_table("looks", "@", LOOKS, operands),
    ]
    path.write_text("\n".join(lines) + "\n")


def write_javascript() -> None:
    path = CASES / "javascript.yaml"
    written = YAML(typ="safe", pure=True).load(path)
    scope = written["scope"]
    answers = ask([(case["expr"], scope) for case in written["cases"]])
    lines = [
        "# Expressions that mean in this language what they mean in JavaScript. Add an `expr` and run",
        "# tests/expr/node_truth.py, which asks JavaScript for what it gives.",
        f"source: JavaScript, node {_version()}; NaN, infinities and undefined are null by semantics 4",
        "scope:",
        *(f"  {name}: {_line(value)}" for name, value in scope.items()),
        "cases:",
    ]
    for case, answer in zip(written["cases"], answers, strict=True):
        lines += [f"  - expr: {_line(case['expr'])}", f"    gives: {_line(answer)}"]
    path.write_text("\n".join(lines) + "\n")


def _version() -> str:
    return (
        subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
        .stdout[1:]
        .split(".")[0]
    )


if __name__ == "__main__":
    write_operators()
    write_javascript()
    sys.exit(0)
