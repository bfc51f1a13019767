"""What works here and what does not: small checks, each finding with what to do about it.

No check starts a server, connects to one, or reads what a `file:` or `keyring:` reference stands for. A check
is a function from a case to findings; a new one is a file here and a line in CHECKS.
"""

from luthier.doctor.examination import CHECKS, examine
from luthier.doctor.finding import Case, Finding

__all__ = ["CHECKS", "Case", "Finding", "examine"]
