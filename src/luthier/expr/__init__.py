"""The expression language of ensembles: `${…}` over JSON values, every result with its label."""

from luthier.expr.expression import Expression, parse
from luthier.expr.references import Reference
from luthier.expr.scan import scan_close
from luthier.expr.scope import Limits, Scope
from luthier.expr.template import Compiled, compile_condition, compile_faults, compile_value

__all__ = [
    "Compiled",
    "Expression",
    "Limits",
    "Reference",
    "Scope",
    "compile_condition",
    "compile_faults",
    "compile_value",
    "parse",
    "scan_close",
]
