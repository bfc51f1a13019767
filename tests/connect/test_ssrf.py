"""No URL and no name leads to this machine where private addresses are not allowed: a listener hears nobody.

Each is tried as production has it, and on a development machine as what a reference or a server's metadata
names. The same listener hears those that are allowed to reach it.
"""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML

from luthier.clock import SystemClock
from luthier.connect import ServerRegistry
from luthier.connect.targets import auth_of, target_of
from luthier.errors import ConnectError, HttpError, WireError
from luthier.spec import read_project
from luthier.spec.project import Auth, ServerEntry
from luthier.spec.urls import rules_of
from luthier.web import Reach, UrlRules
from luthier.wire.auth import Means, MemoryTokens, make_authorizer
from luthier.wire.http import HttpClient, HttpTarget, OutgoingHttp, TlsFiles, open_remote
from luthier.wire.http.facts import Asked
from tests.connect.canary import BOUND, HOSTS, Canary, Names, Silent
from tests.wire.http.support import Answering, Site
from tests.wire.http.support import Asked as Came

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp.abc import AbstractResolver

    Figure = Callable[[str], None]

CASES: dict[str, Any] = YAML(typ="safe", pure=True).load(
    Path(__file__).parent.parent / "cases/ssrf/urls.yaml"
)
FORMS = {
    form: name == "reached"
    for kind in CASES["spelled"].values()
    for name, forms in kind.items()
    for form in forms
}
UNKNOWN = ("https://none.example", "https://fails.example", "https://ip6-localhost")
"""Names without an address are refused for now: they may come to have one."""

HEARD = [
    form
    for form, reached in FORMS.items()
    if reached and (len(HOSTS) > 1 or not any(sign in form for sign in ("[", "inside6", "mapped")))
]
"""What the canary must hear where it may, on a machine that has no version 6 too."""

PING = Asked(method="ping")


@asynccontextmanager
async def client_with(names: AbstractResolver) -> AsyncIterator[HttpClient]:
    client = HttpClient({}, resolver=names)
    try:
        yield client
    finally:
        await client.close()


async def connect(
    url: str, names: AbstractResolver, environment: str = "production", timeout: float = 2.0, **fields: Any
) -> None:
    """A try to reach the server of an entry. Raises WireError."""
    entry = ServerEntry(id="far", transport="http", url=url, timeout=timeout, **fields)
    registry = ServerRegistry([entry], environment=environment)
    target = target_of(entry, registry, {"WHERE": url})
    async with client_with(names) as client, asyncio.timeout(BOUND):
        remote = await open_remote(client, target, "http", clock=SystemClock(), timeout=entry.timeout)
        await remote.session.close()


async def refused(url: str, names: AbstractResolver, environment: str, **fields: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        await connect(url, names, environment, **fields)
    return caught.value


async def ask_for_token(url: str, names: AbstractResolver, rules: UrlRules) -> None:
    """What is sent to an address that the metadata of a server names. Raises WireError."""
    async with client_with(names) as client, asyncio.timeout(BOUND):
        means = Means("far", "https://mcp.example.com/", client, SystemClock(), rules, TlsFiles(), proxy=None)
        fetch, _ = means.fetch()
        await fetch("POST", url, {}, b"grant_type=client_credentials", what="the token endpoint")


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len(FORMS) >= 60
    assert sum(FORMS.values()) >= 20


@pytest.mark.timeout(120)  # some hundred tries, each with a client of its own
async def test_no_form_of_a_url_reaches_this_machine(figure: Figure) -> None:
    names = Names(CASES["names"])
    heard, tried = 0, 0
    async with Canary() as canary:
        for form in FORMS:
            url = form.replace("{port}", str(canary.port))
            errors = [
                await refused(url, names, "production"),
                await refused("${WHERE}", names, "development"),
            ]
            for rules in (UrlRules(), UrlRules.of("http://127.0.0.1:1/", production=False)):
                with pytest.raises(WireError) as caught:
                    await ask_for_token(url, names, rules)
                errors.append(caught.value)
            for error in errors:
                assert isinstance(error, ConnectError), form
                assert not error.retryable or form.startswith(UNKNOWN), form
                assert not error.sent, form
            tried += len(errors)
        heard = await canary.heard()
    figure(f"G7: {len(FORMS)} forms of URLs, {tried} tries, {heard} connections at the canary")
    assert heard == 0


@pytest.mark.parametrize("form", HEARD)
async def test_the_same_listener_hears_whoever_may_reach_it(form: str) -> None:
    async with Canary() as canary:
        url, names = form.replace("{port}", str(canary.port)), Names(CASES["names"])
        await refused(url, names, "production", allow_private=True)  # no server, but somebody who hears
        assert await canary.heard() >= 1
        await refused(url, names, "development")  # the file itself names it
        assert await canary.heard() >= 1
        with pytest.raises(WireError):
            await ask_for_token(url, names, UrlRules(allow_private=True))
        assert await canary.heard() >= 1


def is_global(text: str) -> bool:
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_global
    except ValueError:
        return True  # no literal address


def test_the_checks_that_are_often_made_let_some_of_it_pass(figure: Figure) -> None:
    """A control: the corpus is not made of what any check would find."""
    plain = [form.replace("{port}", "1") for form in HEARD]
    by_text = [url for url in plain if is_global(urlsplit(url).hostname or "")]
    wrapped = [address for found in CASES["names"].values() for address in found or () if ":" in address]
    wrapped += [form.partition("[")[2].partition("]")[0] for form in FORMS if "//[" in form]
    by_address = [address for address in wrapped if ":" in address and is_global(address)]
    figure(
        f"G7: of {len(plain)} forms that are heard, a look at literal addresses passes {len(by_text)}; "
        f"ipaddress.is_global passes {len(set(by_address))} addresses that lead inside"
    )
    assert by_text
    assert by_address


# Names that change


async def test_a_name_that_comes_to_stand_for_this_machine_is_not_followed_there(figure: Figure) -> None:
    # The first address is of a part of the public space that was given back and leads nowhere (RFC 3701).
    answers: list[list[str]] = []
    names = Names({"rebound.example": lambda: answers.pop(0)})
    async with Canary() as canary:
        url = f"https://rebound.example:{canary.port}/mcp"
        for _ in range(3):
            answers[:] = [["3ffe::1"], ["127.0.0.1"], ["::1"], ["3ffe::1", "127.0.0.1"]]
            lookups = len(names.asked)
            await refused(url, names, "production", timeout=0.3)
            assert len(names.asked) == lookups + 1  # judged and connected to are one answer
            for _ in range(3):
                error = await refused(url, names, "production")
                assert "it is private or this machine's own" in error.message
                assert not isinstance(error, ConnectError) or not error.retryable
        heard = await canary.heard()
        figure(f"G7: 12 tries under DNS rebinding, {heard} connections at the canary")
        assert heard == 0
        answers[:] = [["127.0.0.1"]]
        await refused(url, names, "production", allow_private=True)
        assert await canary.heard() == 1


async def test_a_name_that_is_refused_is_told_with_its_place_and_what_allows_it() -> None:
    project = read_project(
        {
            "mcpServers": {"far": {"url": "https://inside.example/mcp?page=s3cret"}},
            "environment": "production",
        }
    )
    target = target_of(project.servers["far"], ServerRegistry.of(project), {})
    async with client_with(Names(CASES["names"])) as client, asyncio.timeout(BOUND):
        with pytest.raises(ConnectError) as caught:
            await client.open(target, PING, "POST", target.url, {}, b"")
    assert caught.value.message == (
        "Server 'far': mcpServers.far.url: 'https://inside.example/mcp' is not asked: "
        "it is private or this machine's own, by what its name stands for."
    )
    assert caught.value.hint == "If it is meant, set `allow_private: true` for this server."


async def test_plain_http_in_production_goes_to_private_addresses_only() -> None:
    names = Names({"open.example": ["1.1.1.1"], "both.example": ["127.0.0.1", "1.1.1.1"]})
    for host in ("open.example", "both.example"):
        error = await refused(f"http://{host}/", names, "production", allow_private=True)
        assert "plain http is for private addresses only" in error.message
        assert error.hint == "Write https://."


async def test_a_lookup_without_end_is_no_connection() -> None:
    names = Silent()
    with pytest.raises(WireError):
        await connect("https://mcp.example.com/", names, timeout=0.1)
    assert names.asked == ["mcp.example.com"]


# What a server says


@pytest.mark.parametrize("environment", ["development", "production"])
async def test_redirects_lead_nowhere_else(environment: str, figure: Figure) -> None:
    tried = 0
    async with Canary() as canary:
        hosts = ("127.0.0.1", "localhost", "inside.example")
        ways = [f"{scheme}://{host}:{canary.port}/mcp" for scheme in ("http", "https") for host in hosts]
        ways += [
            f"//127.0.0.1:{canary.port}/",
            f"http://x@127.0.0.1:{canary.port}/",
            f"/\\127.0.0.1:{canary.port}/",
        ]
        for way in ways:
            for status in (301, 302, 303, 307, 308):

                def lead_on(asked: Came, answering: Answering, way: str = way, status: int = status) -> None:
                    first = asked.path == "/mcp"
                    answering.give(307 if first else status, Location="/next" if first else way)

                async with Site(lead_on) as site:
                    error = await refused(site.url, Names(CASES["names"]), environment, allow_private=True)
                    paths = [asked.path for asked in site.asked]
                assert {"/mcp", "/next"} <= set(paths)
                assert isinstance(error, ConnectError | HttpError)
                tried += 1
        heard = await canary.heard()
    figure(f"G7: {tried} chains of redirects in {environment}, {heard} connections at the canary")
    assert heard == 0


@pytest.mark.parametrize("environment", ["development", "production"])
async def test_a_stream_that_names_another_place_for_messages_is_not_followed(environment: str) -> None:
    async with Canary() as canary:

        def elsewhere(_: Came, answering: Answering) -> None:
            answering.begin()
            answering.event(f"http://127.0.0.1:{canary.port}/messages".encode(), name="endpoint")

        async with Site(elsewhere) as site:
            entry = ServerEntry(id="far", transport="sse", url=site.url, allow_private=True, timeout=2.0)
            target = target_of(entry, ServerRegistry([entry], environment=environment), {})
            async with client_with(Names({})) as client, asyncio.timeout(BOUND):
                with pytest.raises(WireError):
                    await open_remote(client, target, "sse", clock=SystemClock(), timeout=entry.timeout)
        assert await canary.heard() == 0


async def test_a_token_endpoint_of_the_entry_is_judged_by_its_address_too() -> None:
    names = Names(CASES["names"])
    async with Canary() as canary:
        for environment, text, heard in (
            ("production", f"https://inside.example:{canary.port}/token", 0),
            ("development", f"https://${{HOST}}:{canary.port}/token", 0),
            ("development", f"https://inside.example:{canary.port}/token", 1),
        ):
            said = Auth(type="oauth", client_id="me", client_secret="x", token_url=text)
            entry = ServerEntry(id="far", transport="http", url="https://mcp.example.com/", auth=said)
            registry = ServerRegistry([entry], environment=environment)
            async with client_with(names) as client, asyncio.timeout(BOUND):
                authorizer = make_authorizer(
                    auth_of(entry, registry, {"HOST": "inside.example"}),
                    server=entry.id,
                    url="https://mcp.example.com/",
                    secret=None,
                    client=client,
                    tokens=MemoryTokens(),
                    clock=SystemClock(),
                    rules=rules_of(entry, environment),
                )
                with pytest.raises(ConnectError):
                    await authorizer.headers(OutgoingHttp("POST", "https://mcp.example.com/"))
            assert await canary.heard() == heard


# Proxies


async def test_a_proxy_may_stand_inside_and_literal_addresses_do_not_go_past_it() -> None:
    seen: list[str] = []

    def proxy(asked: Came, answering: Answering) -> None:
        seen.append(f"{asked.method} {asked.path}")
        answering.give(403)

    names = Names({"proxy.example": ["127.0.0.1"], "inside.example": ["127.0.0.1"]})
    async with Site(proxy) as site:
        via = f"http://proxy.example:{site.port}"
        await refused("https://mcp.example.com/", names, "production", proxy=via)
        assert set(seen) == {"CONNECT mcp.example.com:443"}
        assert set(names.asked) == {"proxy.example"}
        seen.clear()
        for host in ("127.0.0.1", "127.1", "0x7f000001", "[::1]", "localhost", "10.0.0.1", "a.internal"):
            await refused(f"https://{host}/", names, "production", proxy=via)
        assert seen == []


# One client


async def test_a_connection_that_one_server_may_have_is_not_lent_to_another() -> None:
    async with Site() as site, client_with(Names({"a.example": ["127.0.0.1"]})) as client:
        url = f"http://a.example:{site.port}/mcp"
        free = HttpTarget(server="free", url=url, reach=Reach.any)
        answer = await client.open(free, PING, "GET", url, {}, b"")
        await answer.read()
        assert len(site.asked) == 1
        secure = f"https://a.example:{site.port}/mcp"
        for other, reach in ((url, Reach.public), (secure, Reach.public)):
            with pytest.raises(ConnectError):
                await client.open(HttpTarget(server="x", url=other, reach=reach), PING, "GET", other, {}, b"")
        assert len(site.asked) == 1
