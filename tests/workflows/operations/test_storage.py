"""`storage` steps through the gate: values and files outlast a run, and so do their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from luthier import Runtime
from luthier.errors import SpecError
from luthier.taint import SECRET, Confidentiality, Integrity, Label, Labelled, Source
from tests.wire.http.support import bounded

if TYPE_CHECKING:
    from pathlib import Path

    from luthier.workflows import Run

WEB = Label(Integrity.untrusted, Confidentiality.private, frozenset({Source("web", "fetch", "c0")}))


async def run(root: Path, *configs: dict[str, Any], project: str = "", **inputs: Any) -> Run:
    """The steps one after the other; the output is that of the last."""
    (root / "luthier.yaml").write_text(f"mcpServers: {{}}\n{project}")
    steps = [
        {
            "name": f"s{index}",
            "operation": "storage",
            "config": config,
            **({"depends_on": [f"s{index - 1}"]} if index else {}),
        }
        for index, config in enumerate(configs)
    ]
    async with Runtime.open(root / "luthier.yaml") as rt:
        done: Run = await bounded(rt.run({"ensemble": "t", "agents": steps}, inputs))
    return done


def kv(action: str, **config: Any) -> dict[str, Any]:
    return {"type": "kv", "action": action, **config}


def files(action: str, **config: Any) -> dict[str, Any]:
    return {"type": "files", "action": action, **config}


async def test_a_value_outlasts_the_run_with_its_label(tmp_path: Path) -> None:
    put = kv("put", key="k-${input.n}", value={"x": "${input.value}"}, ttl=3600)
    done = await run(tmp_path, put, n=1, value=Labelled("from the web", WEB))
    assert done.success, done.error
    again = await run(tmp_path, kv("get", key="k-1"))
    assert (again.output["found"], again.output["value"]) == (True, {"x": "from the web"})
    assert again.label.integrity is Integrity.untrusted
    assert WEB.sources <= again.label.sources


async def test_what_was_trusted_comes_back_trusted(tmp_path: Path) -> None:
    done = await run(tmp_path, kv("put", key="k", value=1), kv("get", key="k"))
    assert (done.output["value"], done.label.integrity) == (1, Integrity.trusted)


async def test_what_is_read_by_an_untrusted_key_is_not_trusted(tmp_path: Path) -> None:
    done = await run(tmp_path, kv("put", key="k", value=1), kv("get", key="${input.k}"), k=Labelled("k", WEB))
    assert (done.output["value"], done.label.integrity) == (1, Integrity.untrusted)


async def test_a_miss_is_no_failure(tmp_path: Path) -> None:
    done = await run(tmp_path, kv("get", key="nothing"))
    assert (done.success, done.output["value"], done.output["found"]) == (True, None, False)


@pytest.mark.parametrize(
    "config", [kv("put", key="k", value="${input.s}"), files("write", path="k", content="${input.s}")]
)
async def test_nothing_secret_is_kept(tmp_path: Path, config: dict[str, Any]) -> None:
    done = await run(tmp_path, config, s=Labelled("s3cret-value", SECRET))
    assert done.error is not None
    assert done.error["kind"] == "denied"
    for path in (tmp_path / ".luthier").rglob("*"):
        assert not path.is_file() or b"s3cret-value" not in path.read_bytes(), path


async def test_files_lie_in_their_folder(tmp_path: Path) -> None:
    done = await run(
        tmp_path,
        files("write", path="a/b.txt", content="one"),
        files("append", path="a/b.txt", content=" two"),
        files("read", path="a/b.txt"),
    )
    assert done.output["content"] == "one two"
    assert (tmp_path / ".luthier" / "files" / "a" / "b.txt").read_text() == "one two"


async def test_the_folder_is_the_projects_choice(tmp_path: Path) -> None:
    done = await run(tmp_path, files("put", key="x", value="1"), project="storage: {files: kept}\n")
    assert done.success, done.error
    assert (tmp_path / "kept" / "x").read_text() == "1"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "link/x"])
async def test_no_path_leads_out_of_it(tmp_path: Path, path: str) -> None:
    (tmp_path / ".luthier" / "files").mkdir(parents=True)
    (tmp_path / ".luthier" / "files" / "link").symlink_to(tmp_path)
    for action in ("read", "write"):
        more = {"content": "x"} if action == "write" else {}
        done = await run(tmp_path, files(action, path="${input.path}", **more), path=path)
        assert done.error is not None
        assert done.error["kind"] in ("arguments", "denied")
    assert not (tmp_path / "x").exists()


async def test_a_policy_decides_about_storage_too(tmp_path: Path) -> None:
    when = "{tool: 'builtin://storage/*', argument: /value, label: {integrity: untrusted}}"
    rules = f"policies: [{{name: p, when: {when}, then: deny}}]\n"
    put = kv("put", key="k", value="${input.v}")
    denied = await run(tmp_path, put, project=rules, v=Labelled("x", WEB))
    assert denied.error is not None
    assert denied.error["kind"] == "denied"
    assert (await run(tmp_path, put, project=rules, v="x")).success


@pytest.mark.parametrize(
    ("folder", "said"),
    [(".", "own folder"), ("..", "own folder"), (".luthier", "own folder"), ("scripts/x", "among what")],
)
async def test_the_folder_is_never_one_of_the_projects_own(tmp_path: Path, folder: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        await run(tmp_path, kv("list"), project=f"storage: {{files: {folder}}}\n")
