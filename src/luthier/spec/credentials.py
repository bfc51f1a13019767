"""What in an entry is a credential, and whether it stands there itself or only a reference to it.

A name says it by its words (`X-Api-Key`, `GITHUB_TOKEN`), a value by the shape of the tokens of well-known
makers. A default inside a reference counts as written out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from luthier.redaction.patterns import looks_like_credential
from luthier.secrets import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec.project import ServerEntry

    Keys = tuple[str | int, ...]

SECRET_FIELDS = ("headers", "env", "auth", "secret")
"""Where references to stored secrets may stand."""

_AUTH = frozenset({"token", "client_secret", "id_token"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = frozenset(
    {
        *("token", "secret", "password", "passwd", "passphrase", "pass", "pwd", "credential", "credentials"),
        *("key", "apikey", "pat", "auth", "authorization", "cookie", "bearer", "jwt"),
    }
)
_ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "credentials")  # `PGPASSWORD`
_PLAIN_ENDS = frozenset(
    {
        *("file", "path", "dir", "url", "uri", "id", "name", "type", "header", "mode", "method", "scheme"),
        *("length", "size", "ttl", "expiry", "endpoint", "host", "port", "region", "version", "format"),
        *("prefix", "enabled", "required", "limit", "count", "max", "min"),
    }
)
_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_SHORTEST = 4  # of a secret that only its name tells
_NO_SECRET = re.compile(r"(?i)|true|false|yes|no|on|off|none|null|\d{1,5}")
_HARMLESS = re.compile(r"[A-Za-z_-]{0,20}")  # a word around a reference: `Bearer`, `session=`
_BETWEEN = re.compile(r"[\s=:;,&\"']")


def is_credential_name(name: str) -> bool:
    """Whether a header, a variable or a parameter of that name holds a credential."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _PLAIN_ENDS:
        return False
    return not _SECRET.isdisjoint(words) or any(word.endswith(_ENDINGS) for word in words)


def holds_credential(*keys: str | int) -> bool:
    """Whether the field of an entry at `keys` is one for a credential."""
    match keys:
        case ("secret",):
            return True
        case ("auth", name):
            return name in _AUTH
        case ("headers" | "env", str() as name):
            return is_credential_name(name)
        case _:
            return False


class Written(NamedTuple):
    """A credential that stands in an entry itself: where, what is wrong with that, and its text."""

    keys: Keys
    fault: str
    value: str


def written_credentials(entry: ServerEntry) -> Iterator[Written]:
    """Every one that an entry holds."""
    behind = dict(_behind_options(entry.args))
    for keys, text in _texts(entry):
        if keys[0] in SECRET_FIELDS:
            if (holds_credential(*keys) and _is_written_out(text)) or looks_like_credential(text):
                yield Written(keys, "a secret stands in the file", text)
        elif keys[0] == "url":
            if (value := _told_by(text)) is not None:
                fault = "a credential stands in the address, where logs and proxies see it"
                yield Written(keys, fault, value)
        elif keys[0] == "proxy":
            if _is_written_out(password := _password(text)):
                yield Written(keys, "a password stands in the file", password)
        elif looks_like_credential(text) or keys[1] in behind:
            fault = "a secret stands in the file, and whoever lists processes will see it"
            yield Written(keys, fault, behind.get(keys[1], text))


def _behind_options(args: tuple[str, ...]) -> Iterator[tuple[str | int, str]]:
    """The arguments that hold a secret by the name of their option: `--token=x`, `--token x`."""
    before = ""
    for index, text in enumerate(args):
        flag = _FLAG.fullmatch(text)
        name, value = (before, text) if flag is None else (flag[1], flag[2] or "")
        if is_credential_name(name) and len(value) >= _SHORTEST and not find(value):
            yield index, value
        before = flag[1] if flag and flag[2] is None else ""


def _texts(entry: ServerEntry) -> Iterator[tuple[Keys, str]]:
    yield from ((("args", index), text) for index, text in enumerate(entry.args))
    yield from ((("headers", name), text) for name, text in entry.headers.items())
    yield from ((("env", name), text) for name, text in entry.env.items())
    for field in ("url", "proxy", "secret"):
        if text := getattr(entry, field):
            yield (field,), text
    for name in entry.auth.__struct_fields__:
        if isinstance(text := getattr(entry.auth, name), str) and name != "type":
            yield ("auth", name), text


def _is_written_out(text: str) -> bool:
    references = find(text)
    if not references:
        return not _NO_SECRET.fullmatch(text.strip())
    if any(reference.default for reference in references):
        return True
    for reference in references:
        text = text.replace(reference.text, " ", 1)
    return not all(_HARMLESS.fullmatch(word) for word in _BETWEEN.split(text))


def _told_by(url: str) -> str | None:
    """The credential in its query. A user and a password in it are refused for themselves."""
    try:
        query = parse_qsl(urlsplit(url).query)
    except ValueError:  # it is refused for that
        return None
    named = [value for name, value in query if is_credential_name(name)]
    return named[0] if named else url if looks_like_credential(url) else None


def _password(url: str) -> str:
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""
