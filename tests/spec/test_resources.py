"""`serve.resources`: which address leads to which file, and what keeps an entry from being one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.errors import SpecError
from luthier.spec import Resource, Variable, read_project

TEMPLATE = {"uri": "x://{a}/of/{b}", "file": "files/{b}/{a}.txt"}


def read(*resources: Any) -> tuple[Resource, ...]:
    return read_project({"serve": {"resources": list(resources)}}).serve.resources


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("x://one/of/two", "files/two/one.txt"),
        ("x://o%20ne/of/two", "files/two/o ne.txt"),
        ("x://a.b/of/two", "files/two/a.b.txt"),
        ("x://../of/two", None),
        ("x://%2e%2e/of/two", None),
        ("x://a%2Fb/of/two", None),
        ("x://a%5Cb/of/two", None),
        ("x://a%00/of/two", None),
        ("x://.hidden/of/two", None),
        ("x:///of/two", None),
        ("x://one/of/two/more", None),
        ("x://one/of/two?q", None),
        ("y://one/of/two", None),
    ],
)
def test_an_address_leads_to_one_file_or_to_none(uri: str, file: str | None) -> None:
    (resource,) = read(TEMPLATE)
    assert resource.file_of(uri) == file


def test_a_choice_is_kept_to() -> None:
    (resource,) = read({**TEMPLATE, "variables": {"a": {"enum": ["one"]}}})
    assert resource.file_of("x://one/of/two")
    assert resource.file_of("x://other/of/two") is None


PARTS = st.text(min_size=1, max_size=20)


@given(PARTS, PARTS)
def test_whatever_is_filled_in_leads_to_a_file_of_the_folder(a: str, b: str) -> None:
    resource = Resource(
        uri=TEMPLATE["uri"], file=TEMPLATE["file"], variables={"a": Variable(), "b": Variable()}
    )
    try:
        uri = TEMPLATE["uri"].replace("{a}", quote(a, safe="")).replace("{b}", quote(b, safe=""))
    except UnicodeEncodeError:
        return  # half of a character is in no address
    file = resource.file_of(uri)
    assert file is None or (file == f"files/{b}/{a}.txt" and ".." not in file.split("/"))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (1, "a resource must be a mapping"),
        ({"file": "a"}, "`uri` is missing"),
        ({"uri": "x://a"}, "`file` is missing"),
        ({"uri": "no address", "file": "a"}, "is no address"),
        ({"uri": "x://{a-b}", "file": "d/{a-b}"}, "is no variable"),
        ({"uri": "x://{a}", "file": "d/a"}, "must have the same variables"),
        ({"uri": "x://a", "file": "d/{a}"}, "must have the same variables"),
        ({"uri": "x://{a}/{a}", "file": "d/{a}"}, "stands twice"),
        ({"uri": "x://{a}", "file": "{a}/d"}, "in a folder of their own"),
        ({"uri": "x://a", "file": "/etc/passwd"}, "inside the project"),
        ({"uri": "x://a", "file": "d/../../x"}, "inside the project"),
        ({"uri": "x://a", "file": "d", "variables": {"a": None}}, "is no variable of `uri`"),
        ({"uri": "x://a", "file": "d", "mime": "x"}, "unknown key `mime`"),
    ],
)
def test_what_is_no_resource_says_why(entry: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(entry)


def test_an_address_is_that_of_one_resource() -> None:
    with pytest.raises(SpecError, match="another resource"):
        read({"uri": "x://a", "file": "a"}, {"uri": "x://a", "file": "b"})


def test_resources_are_a_list() -> None:
    with pytest.raises(SpecError, match="a list of resources"):
        read_project({"serve": {"resources": {}}})


@pytest.mark.parametrize("folder", ["/etc", "../x", "a\0"])
def test_prompts_are_a_folder_of_the_project(folder: str) -> None:
    with pytest.raises(SpecError, match="a folder inside the project"):
        read_project({"serve": {"prompts": folder}})
