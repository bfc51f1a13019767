"""The page on definitions lists every rule that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("text/cleaner.py", "text/suspicions.py", "text/hidden.py", "govern/findings.py")


def test_the_rules_of_the_page_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "definitions.md").read_text()
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    code = "\n".join((ROOT / "src" / "luthier" / name).read_text() for name in SOURCES)
    made = set(re.findall(r'Finding\("([a-z-]+)"', code)) | set(
        re.findall(r'^    \("([a-z]+)", ', code, re.MULTILINE)
    )
    made |= set(re.findall(r'": "([a-z]+-name)"', code)) | {"near-name"}
    assert listed == made
    assert len(listed) == 17
