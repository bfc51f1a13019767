"""The house keeps to ARCHITECTURE.md, and the checker that says so bites in every form of import."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.rooms import FREE, faults, read_rooms

ROOT = Path(__file__).parent.parent

LIST = """\
```rooms
src/luthier/
  ground.py      what all others stand on
  low/           a room                        | lark, pydantic in models.py
  high/          a room above it               | pytest (lazy)
  __init__.py    the face
```
"""


@pytest.fixture(scope="module")
def architecture() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_no_import_goes_against_the_list(architecture: str) -> None:
    assert faults(ROOT / "src" / "luthier", read_rooms(architecture)) == []


def test_every_dependency_has_a_room_and_every_room_declares_its_dependencies(architecture: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w.-]", line)[0].replace("-", "_") for line in project["dependencies"]}
    parties = [party for room in read_rooms(architecture).values() for party in room.parties]
    names = {name.partition(".")[0] for name in declared}
    assert names <= {party.name for party in parties} | FREE
    hosts = {"pytest"}  # it loads its plugin, so it is there
    assert names >= ({party.name for party in parties if not party.lazy} | FREE) - hosts


# The checker itself, on small made-up trees


def check(root: Path, files: dict[str, str], rooms: str = LIST) -> list[str]:
    default = {"ground.py": "", "low/__init__.py": "", "high/__init__.py": "", "__init__.py": ""}
    for name, source in (default | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return faults(root, read_rooms(rooms))


FORMS = [
    "import luthier.{0}",
    "import luthier.{0}.part as p",
    "import json, luthier.{0}",
    "from luthier import {0}",
    "from luthier import {0} as other",
    "from luthier.{0} import name",
    "from luthier.{0}.part import name",
    "from .. import {0}",
    "from ..{0} import name",
    "from ..{0}.part import name",
    "def f():\n    from luthier import {0}",
    "async def f():\n    import luthier.{0}",
    "class C:\n    from luthier.{0} import name",
    "try:\n    import luthier.{0}\nexcept ImportError:\n    pass",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from luthier.{0} import name",
    "import typing\nif typing.TYPE_CHECKING:\n    from ..{0} import name",
    "import importlib\nimportlib.import_module('luthier.{0}')",
    "import importlib as i\ni.import_module('luthier.{0}.part')",
    "from importlib import import_module\nimport_module('luthier.{0}')",
    "from importlib import import_module as load\nload(name='luthier.{0}')",
    "from importlib import import_module\nimport_module('..{0}', __package__)",
    "from importlib import import_module\nimport_module('...{0}', __name__)",
    "from importlib import import_module\nimport_module('.{0}', package='luthier')",
    "f = lambda: __import__('luthier.{0}')",
    "__import__('luthier', fromlist=['{0}'])",
    "__import__('{0}', globals(), level=2)",
    "import builtins\nbuiltins.__import__('luthier.{0}')",
]


@pytest.mark.parametrize("form", FORMS)
def test_an_import_of_a_room_that_stands_below_is_found_in_every_form(form: str, tmp_path: Path) -> None:
    [fault] = check(tmp_path, {"low/part.py": form.format("high")})
    line = (
        form.format("high")
        .splitlines()
        .index(next(x for x in form.format("high").splitlines() if "high" in x))
    )
    assert fault.startswith(f"low/part.py:{line + 1}: imports luthier.high")
    assert fault.endswith("which stands below low in the list")


@pytest.mark.parametrize("form", FORMS)
def test_the_same_forms_may_import_what_stands_above(form: str, tmp_path: Path) -> None:
    assert check(tmp_path, {"high/part.py": form.format("ground"), "low/part.py": form.format("low")}) == []


@pytest.mark.parametrize("form", ["import luthier", "from luthier import Runtime", "from .. import *"])
def test_the_face_stands_below_every_room(form: str, tmp_path: Path) -> None:
    [fault] = check(tmp_path, {"high/part.py": form})
    assert "imports luthier.__init__, which stands below high" in fault


def test_the_face_may_import_everything_and_by_computed_names(tmp_path: Path) -> None:
    face = "from luthier import high\nfrom importlib import import_module\nimport_module('luthier.' + x)"
    assert check(tmp_path, {"__init__.py": face}) == []


@pytest.mark.parametrize(
    "form",
    [
        "from importlib import import_module\nimport_module(f'luthier.{x}')",
        "from importlib import import_module\nload = import_module",
        "import importlib\nload = importlib.import_module",
        "__import__(*names)",
        "__import__()",
    ],
)
def test_a_computed_name_is_a_fault_of_its_own(form: str, tmp_path: Path) -> None:
    [fault] = check(tmp_path, {"low/part.py": form})
    assert fault.endswith("imports by a computed name, which cannot be checked")


@pytest.mark.parametrize(
    ("form", "how"),
    [
        ("exec('import luthier.high')", "exec"),
        ("x = eval('__imp' + 'ort__')('luthier.high')", "eval"),
        ("run = exec", "exec"),
        ("map(eval, texts)", "eval"),
        ("import builtins\nbuiltins.exec(text)", "builtins.exec"),
        ("import builtins as b\nb.eval(text)", "builtins.eval"),
        ("__builtins__.exec(text)", "builtins.exec"),
        ("from builtins import exec as run\nrun(text)", "builtins.exec"),
        ("import sys\nhigh = sys.modules['luthier.high']", "sys.modules"),
        ("import sys\ndef f():\n    return sys.modules.get('luthier.high')", "sys.modules"),
        ("import sys as s\ntable = s.modules", "sys.modules"),
        ("import sys\nsys.modules['luthier.high'].x = 1", "sys.modules"),
        ("import os\nos.sys.modules.values()", "sys.modules"),
        ("from sys import modules", "sys.modules"),
        ("import pkgutil\npkgutil.resolve_name('luthier.high:x')", "pkgutil.resolve_name"),
        ("import pkgutil as p\nf = lambda: p.resolve_name(name)", "pkgutil.resolve_name"),
        ("from pkgutil import resolve_name as find\nfind('luthier.high')", "pkgutil.resolve_name"),
        ("import runpy\nrunpy.run_module('luthier.high')", "runpy.run_module"),
    ],
)
def test_what_gets_at_modules_out_of_sight_is_a_fault_but_in_the_face(
    form: str, how: str, tmp_path: Path
) -> None:
    [fault] = check(tmp_path, {"low/part.py": form, "__init__.py": form})
    assert fault.startswith("low/part.py:")
    assert fault.endswith(f"may import by {how}, which cannot be checked")


@pytest.mark.parametrize(
    "form",
    [
        "import sys\nsys.modules[name] = module",
        "import sys\ndel sys.modules[name]",
        "import sys\nsys.path, sys.argv, project.modules['x']",
        "class C:\n    def exec(self): ...\nC().exec()",
        "exec = 1",
    ],
)
def test_what_only_looks_like_it_is_none(form: str, tmp_path: Path) -> None:
    assert check(tmp_path, {"low/part.py": form}) == []


def test_a_module_at_the_top_is_a_room_too(tmp_path: Path) -> None:
    [fault] = check(tmp_path, {"ground.py": "from . import low"})
    assert fault == "ground.py:1: imports luthier.low, which stands below ground in the list"


def test_a_relative_import_in_the_face_of_a_room_starts_at_that_room(tmp_path: Path) -> None:
    files = {"low/__init__.py": "from . import part\nfrom .. import high", "low/part.py": ""}
    assert check(tmp_path, files) == [
        "low/__init__.py:2: imports luthier.high, which stands below low in the list"
    ]


@pytest.mark.parametrize(
    "form",
    [
        "import lark",
        "from lark.lexer import Token",
        "def f():\n    import lark",
        "if TYPE_CHECKING:\n    import lark",
        "__import__('lark')",
    ],
)
def test_a_third_party_is_found_outside_its_room_only(form: str, tmp_path: Path) -> None:
    [fault] = check(tmp_path, {"low/part.py": form, "high/part.py": form})
    assert fault.startswith("high/part.py:")
    assert fault.endswith("imports lark, a third party that has no place here")


def test_a_third_party_can_be_kept_to_one_file(tmp_path: Path) -> None:
    use = "import pydantic"
    [fault] = check(tmp_path, {"low/models.py": use, "low/part.py": use})
    assert fault.startswith("low/part.py:1: imports pydantic")


def test_msgspec_and_the_standard_library_are_free(tmp_path: Path) -> None:
    assert check(tmp_path, {"ground.py": "from __future__ import annotations\nimport json, msgspec"}) == []


@pytest.mark.parametrize(
    "form",
    [
        "import pytest",
        "class C:\n    import pytest",
        "def f(x=__import__('pytest')): ...",
        "if TYPE_CHECKING:\n    x = 1\nelse:\n    import pytest",
    ],
)
def test_a_lazy_third_party_must_not_be_imported_at_once(form: str, tmp_path: Path) -> None:
    [fault] = check(tmp_path, {"high/part.py": form})
    assert fault.endswith("imports pytest at once, though it is marked lazy")


@pytest.mark.parametrize(
    "form",
    [
        "def f():\n    import pytest",
        "f = lambda: __import__('pytest')",
        "if TYPE_CHECKING:\n    import pytest",
    ],
)
def test_a_lazy_third_party_may_come_in_with_a_function(form: str, tmp_path: Path) -> None:
    assert check(tmp_path, {"high/part.py": form}) == []


def test_list_and_disk_must_hold_the_same_rooms(tmp_path: Path) -> None:
    (tmp_path / "left" / "__pycache__").mkdir(parents=True)
    rooms = LIST.replace("  high/", "  gone.py        a room that was\n  high/")
    found = check(
        tmp_path, {"extra/part.py": "", "more.py": "", "high/part.py": "import luthier.more"}, rooms
    )
    assert found == [
        "extra: on disk, but not in the list",
        "more: on disk, but not in the list",
        "gone: in the list, but not on disk",
        "high/part.py:1: imports luthier.more, which is not in the list",
    ]


def test_files_that_are_only_copied_are_not_modules(tmp_path: Path) -> None:
    assert check(tmp_path, {"low/template/tests/test_it.py": "from luthier import Runtime"}) == []


def test_a_package_inside_a_room_is_checked_like_the_room(tmp_path: Path) -> None:
    files = {"low/deep/__init__.py": "", "low/deep/part.py": "from ... import high\nfrom .. import part"}
    [fault] = check(tmp_path, files)
    assert fault.startswith("low/deep/part.py:1: imports luthier.high")


def test_a_folder_must_be_listed_as_a_folder(tmp_path: Path) -> None:
    found = check(tmp_path, {}, LIST.replace("  low/    ", "  low.py  "))
    assert found == ["low: a folder in one and a file in the other of list and disk"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("```rooms", "```", "no block"),
        ("src/luthier/", "src/other/", "must start with"),
        ("  ground.py      what all others stand on", "  ground.py", "not a line"),
        ("  low/", "  high/", "listed twice"),
        ("pytest (lazy)", "pytest (later)", "not a third party"),
    ],
    ids=["no fence", "other package", "no description", "twice", "odd party"],
)
def test_a_list_that_cannot_be_read_is_said_to_be_so(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_rooms(LIST.replace(old, new))


def test_every_logger_is_one_that_redacts() -> None:
    """`luthier.redaction.logger` makes them."""
    plain = re.compile(r"""getLogger\(["']luthier""")
    found = [str(path) for path in (ROOT / "src").rglob("*.py") if plain.search(path.read_text("utf-8"))]
    assert found == []
