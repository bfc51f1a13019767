"""Which settings of an .npmrc are refused, however they are spelled; which file npm would read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.spec.npmrc import npm_fault, refused_keys

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "line",
    [
        "script-shell=/tmp/x",
        "  script-shell = /tmp/x",
        "Script-Shell=/tmp/x",
        '"script-shell"=/tmp/x',
        "'node-options'=--require=/tmp/x",
        r'"node\u002doptions"=x',
        "call=touch x",
        "call[]=touch x",
        "c",
        "git=/tmp/x",
        "${KEY}=x",
        r"script\-shell=x",
        '"unended\\"=x',
        "userconfig=/tmp/npmrc",
    ],
)
def test_settings_that_run_code_are_refused(line: str) -> None:
    assert len(refused_keys(f"; a note\n{line}\n# another")) == 1


def test_usual_settings_are_not() -> None:
    text = "registry=https://npm.example.com/\n//npm.example.com/:_authToken=${TOKEN}\n\n@own:registry=x\nfund=false\n[a]\n"
    assert refused_keys(text) == ()


def test_the_file_is_that_of_the_nearest_project(tmp_path: Path) -> None:
    inner = tmp_path / "package" / "src"
    inner.mkdir(parents=True)
    assert npm_fault(inner) == ""
    (inner.parent / "package.json").write_text("{}")
    (inner / ".npmrc").write_text("call=x")  # not read: the project is above
    assert npm_fault(inner) == ""
    (inner.parent / ".npmrc").write_text("call=x")
    assert npm_fault(inner) == f"{inner.parent / '.npmrc'} sets call, which would run code"
    (inner.parent / ".npmrc").write_text("#" * 300_000)
    assert "is larger than" in npm_fault(inner)
