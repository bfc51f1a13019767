"""Scripts lie below scripts/, whatever links say, and define a function; they are parsed and never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.spec import entry_names, entry_point, find_script
from luthier.spec.scripts import script_path

if TYPE_CHECKING:
    from pathlib import Path

SPELLINGS = {
    "scripts/x": "scripts/x.py",
    "scripts/x.py": "scripts/x.py",
    "./scripts/x.py": "scripts/x.py",
    "script://x": "scripts/x.py",
    "script://x.py": "scripts/x.py",
    "script://deep/x@v1.2": "scripts/deep/x.py",
    "scripts/deep/x@latest": "scripts/deep/x.py",
    " scripts/check-it ": "scripts/check-it.py",
    "scripts/a.b": "scripts/a.b.py",
}


@pytest.mark.parametrize(("written", "path"), SPELLINGS.items())
def test_every_spelling_names_a_file(written: str, path: str) -> None:
    assert script_path(written) == path


OUTSIDE = [
    "x",
    "x.py",
    "/etc/passwd",
    "../x",
    "scripts/../x",
    "scripts",
    "scripts/",
    "script://",
    "script:///x",
]
OUTSIDE += ["scripts/a\\..\\b", "scripts/a\0", "other/x.py", "script://../scripts/x", "scripts/x.js", "~/x"]


@pytest.mark.parametrize("written", OUTSIDE)
def test_what_does_not_name_python_below_scripts_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="scripts"):
        script_path(written)


def test_hyphens_and_underscores_name_the_same_file(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "check_it.py").touch()
    (scripts / "do-it.py").touch()
    assert find_script(tmp_path, "scripts/check-it.py") == (scripts / "check_it.py").resolve()
    assert find_script(tmp_path, "scripts/do_it.py") == (scripts / "do-it.py").resolve()
    (scripts / "check-it.py").touch()
    assert find_script(tmp_path, "scripts/check-it.py").name == "check-it.py"
    with pytest.raises(ValueError, match=r"there is no file scripts/none\.py"):
        find_script(tmp_path, "scripts/none.py")


def test_links_are_followed_but_not_out_of_the_folder(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "real.py").touch()
    (tmp_path / "outside.py").touch()
    (scripts / "inside.py").symlink_to("real.py")
    (scripts / "out.py").symlink_to("../outside.py")
    (scripts / "dir").symlink_to(tmp_path)
    assert find_script(tmp_path, "scripts/inside.py") == (scripts / "real.py").resolve()
    for name in ("scripts/out.py", "scripts/dir/outside.py"):
        with pytest.raises(ValueError, match="leads out of scripts/"):
            find_script(tmp_path, name)


SOURCES = {
    "run": ("def run(context): ...", "run"),
    "async run": ("async def run(context): ...", "run"),
    "default": ("def default(context): ...", "default"),
    "the file's own name": ("def check_it(context): ...", "check_it"),
    "run before the others": ("def check_it(c): ...\ndef default(c): ...\ndef run(c): ...", "run"),
    "imported": ("from helpers import work as run", "run"),
    "assigned": ("def work(c): ...\nrun = work", "run"),
    "in a branch": ("try:\n    import x\n    def run(c): ...\nexcept ImportError:\n    pass", "run"),
    "in an else": ("if 0:\n    pass\nelse:\n    def run(c): ...", "run"),
    "with a doubtful escape": ("x = '\\d'\ndef run(c): ...", "run"),
}


@pytest.mark.parametrize(("source", "name"), SOURCES.values(), ids=SOURCES)
def test_the_function_of_a_script_is_found(source: str, name: str) -> None:
    assert entry_point(source, "check-it") == name


def test_a_script_without_one_says_what_it_may_be_called() -> None:
    with pytest.raises(ValueError, match="it defines no function named run or default or check_it"):
        entry_point("def other(c): ...\nclass C:\n    def run(self): ...", "check-it")
    with pytest.raises(SyntaxError):
        entry_point("def run(:", "x")
    assert entry_names("check-it") == ("run", "default", "check_it")
