"""The environment of a server process: what it gets of ours, what its entry may add, and what nobody may set.

A server gets only names that it needs to run at all, never the rest of our environment, where secrets of
others live. An entry may add anything but the names by which an interpreter, a loader or a package manager
can be made to run or fetch code before the server's own, or that choose which program is run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SAFE = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ"),
        *("LANG", "LANGUAGE"),  # and LC_*
        # Trust in certificate authorities: without it npx and uvx cannot fetch anything behind a company's
        # proxy.
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
        *("NO_PROXY", "no_proxy"),
    }
)
"""Names that every server gets."""

PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})
"""Names that every server gets unless their URL holds a user or a password, which `inherit_env` may name."""

# What stands here is refused in an entry's `env` and `inherit_env`; what follows after it is allowed
# nevertheless.
_REFUSED = re.compile(
    r"""
    PATH | IFS | ENV | BROWSER
    | LD_.* | DYLD_.* | GCONV_PATH | GLIBC_TUNABLES | MALLOC_.* | LOCPATH | NLSPATH
    | PYTHON.* | VIRTUAL_ENV | __PYVENV_LAUNCHER__
    | NODE_.* | NPM_.* | COREPACK_.* | YARN_.* | PNPM_.* | BUN_.* | DENO_.*
    | UV_.* | PIP_.* | PIPX_.* | POETRY_.* | CONDA_.*
    | BASH_.* | BASHOPTS | SHELLOPTS | PS4 | PROMPT_COMMAND | ZDOTDIR | CDPATH
    | GIT_.* | PERL.* | RUBY.* | GEM_.* | BUNDLE_.* | LUA_.* | PHP.* | CLASSPATH
    | JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_JAVA_OPTIONS
    | OPENSSL_.* | SSLKEYLOGFILE | HOSTALIASES | RES_OPTIONS
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HARMLESS = frozenset(
    {
        *("PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
        *("PYTHONFAULTHANDLER", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONASYNCIODEBUG"),
        *(
            "NODE_ENV",
            "NODE_NO_WARNINGS",
            "NODE_EXTRA_CA_CERTS",
            "NODE_TLS_REJECT_UNAUTHORIZED",
            "NODE_DEBUG",
        ),
        *("NODE_USE_SYSTEM_CA",),
        *("UV_OFFLINE", "UV_NATIVE_TLS", "UV_NO_PROGRESS", "UV_HTTP_TIMEOUT", "UV_CACHE_DIR"),
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
        *("GIT_TERMINAL_PROMPT",),
    }
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


def name_fault(name: str) -> str:
    """Why an entry may not set that name; empty when it may."""
    if not _NAME.fullmatch(name):
        return "is not a name of an environment variable"
    if _REFUSED.fullmatch(name) and name not in _HARMLESS:
        return "decides what code is run or fetched, so no entry may set it"
    return ""


def value_fault(value: str) -> str:
    """Why a value cannot be passed on; empty when it can."""
    if "\0" in value:
        return "holds a NUL"
    if value.startswith("() {"):
        return "is a shell function"
    return ""


def inherited(environ: Mapping[str, str], also: Iterable[str]) -> dict[str, str]:
    """What a server gets of our environment: the safe names, and those that its entry asks for."""
    also = frozenset(also)
    return {
        name: value
        for name, value in environ.items()
        if (name in also or _is_safe(name, value)) and not value_fault(value)
    }


def _is_safe(name: str, value: str) -> bool:
    if name in PROXIES:
        return not _has_userinfo(value)
    return name in SAFE or name.startswith("LC_")


def _has_userinfo(url: str) -> bool:
    try:
        return "@" in urlsplit(url if "://" in url else f"http://{url}").netloc
    except ValueError:
        return True
