"""Prompt files: what they say, and every fault of them at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from luthier.errors import SpecError
from luthier.spec import check_paths, load_prompt

if TYPE_CHECKING:
    from pathlib import Path


def written(root: Path, said: str, name: str = "ask") -> Path:
    path = root / f"{name}.yaml"
    path.write_text(said)
    return path


def test_a_prompt_is_named_after_its_file(tmp_path: Path) -> None:
    prompt = load_prompt(written(tmp_path, "text: Hello.\n"))
    assert (prompt.name, len(prompt.messages)) == ("ask", 1)
    assert load_prompt(written(tmp_path, "text: Hello.\nname: other\n")).name == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text: x\nname: a b", "cannot be a prompt's name"),
        ("description: x", "a prompt has `messages`, or `text`"),
        ("text: x\nmessages: [y]", "a prompt has `messages`, or `text`"),
        ("messages: []", "must be a list of messages"),
        ("messages: x", "must be a list of messages"),
        ("messages: [1]", "a message must be a mapping"),
        ("messages: [{}]", "one of `text`, `resource` and `file`"),
        ("messages: [{text: a, file: b}]", "one of `text`, `resource` and `file`"),
        ("messages: [{text: a, role: system}]", "must be one of user, assistant"),
        ("messages: [{text: a, says: b}]", "unknown key `says`"),
        ("text: 1", "`text` must be text"),
        ("text: ${input.a}", "there is no argument `a`"),
        ("text: ${env.a}", "there is only `input`"),
        ("text: ${", "is not closed"),
        ("text: x\narguments: {a: 1}", "`a` must be a mapping"),
        ("text: x\narguments: {a: {type: string}}", "unknown key `type`"),
        ("text: x\ninputs: {}", "did you mean arguments?"),
        ("[]", "a prompt must be a mapping"),
        ("a: b: c", ""),
    ],
)
def test_what_is_no_prompt_says_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_prompt(written(tmp_path, text))
    assert said in str(caught.value)
    assert all(fault.line for fault in caught.value.faults)


def project(root: Path) -> Path:
    (root / "prompts").mkdir()
    serve = "{prompts: prompts, resources: [{uri: 'x://a', file: a.txt}]}"
    (root / "luthier.yaml").write_text(f"serve: {serve}\n")
    return root


def test_check_looks_at_prompts_and_resources(tmp_path: Path) -> None:
    folder = project(tmp_path) / "prompts"
    written(folder, "text: Good.\n")
    written(folder, "text: ${input.a}\n", "bad")
    written(folder, "a: b: c", "worse")
    written(folder, "name: ask\ntext: Twin.\n", "twin")
    (folder / "notes.txt").write_text("no prompt")
    told = "\n".join(map(str, check_paths([tmp_path])))
    assert "there is no file `a.txt`" in told
    assert "there is no argument `a`" in told
    assert "worse.yaml:1" in told
    assert "has the name `ask` too" in told


def test_check_misses_the_folder(tmp_path: Path) -> None:
    (project(tmp_path) / "prompts").rmdir()
    (fault, *_) = [fault for fault in check_paths([tmp_path]) if "folder" in fault.message]
    assert (fault.message, fault.warning) == ("there is no folder `prompts`", True)
