"""What is imported, written and loaded says the same, whatever the texts in a host's file are."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luthier.connect import YamlServers
from luthier.errors import SpecError
from luthier.secrets import find
from luthier.spec import load_project
from luthier.spec.hosts import Import, import_file, sent
from tests.spec.entries import MAPS, TEXTS

if TYPE_CHECKING:
    from pathlib import Path

_COMMON = {
    "description": TEXTS,
    "disabled": st.booleans(),
    "timeout": st.integers(1, 10**6),
    "autoApprove": st.lists(TEXTS, max_size=3) | st.booleans(),
    "includeTools": st.lists(TEXTS, max_size=3),
    "stranger": TEXTS,
}
ENTRIES = st.fixed_dictionaries(
    {"command": TEXTS}, optional=_COMMON | {"args": st.lists(TEXTS, max_size=4), "env": MAPS, "cwd": TEXTS}
) | st.fixed_dictionaries(
    {"url": st.sampled_from(["https://e.example.com/mcp", "https://${HOST}/sse", "http://127.0.0.1:8080"])},
    optional=_COMMON | {"headers": MAPS, "auth": TEXTS, "oauth": st.just({"clientId": "c", "scopes": ["a"]})},
)
FILES = st.dictionaries(TEXTS, ENTRIES, min_size=1, max_size=3)


def read(folder: Path, servers: Any) -> Import | None:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    with suppress(SpecError):
        return import_file(path, root=folder, home=folder)
    return None


@settings(deadline=None)
@given(FILES)
def test_what_is_imported_and_written_is_loaded_as_the_same_entries(
    tmp_path_factory: Any, servers: dict[str, Any]
) -> None:
    folder: Path = tmp_path_factory.mktemp("imported")
    found = read(folder, servers)
    if found is None:
        return
    file = folder / "luthier.yaml"
    file.write_text("# a comment\nexpose_env: []\n")
    store = YamlServers(file)
    for one in found.servers:
        store.add(one.entry)
    assert load_project(file).servers == {one.entry.id: one.entry for one in found.servers}
    assert len(found.servers) == len(servers)
    assert file.read_text().startswith("# a comment\nexpose_env: []\n")


@settings(deadline=None)
@given(FILES)
def test_every_reference_of_an_imported_entry_is_shown_and_none_reads_secrets(
    tmp_path_factory: Any, servers: dict[str, Any]
) -> None:
    found = read(tmp_path_factory.mktemp("imported"), servers)
    for one in found.servers if found else ():
        entry = one.entry
        texts = [
            *(entry.command or "", *entry.args, *entry.env.values(), entry.cwd or ""),
            *(entry.url or "", *entry.headers.values(), entry.auth.token or ""),
        ]
        references = [reference for text in texts for reference in find(text)]
        assert sorted(each.reference for each in sent(entry)) == sorted(each.text for each in references)
        assert {each.kind for each in references} <= {"env"}
        assert not entry.approved
        assert not entry.trusted
