"""The environment of a server process: what it gets of ours.

A server gets only names that it needs to run at all, never the rest of our environment, where secrets of
others live. What its entry may add is for `spec.variables` to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from luthier.spec.variables import value_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDERS = (
    *("HOME", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
)
"""Names that hold the path of a folder of the user's."""

SAFE = frozenset(
    {
        *FOLDERS,
        *("PATH", "USER", "LOGNAME", "SHELL", "TERM", "TZ"),
        *("LANG", "LANGUAGE"),  # and LC_*
        # Trust in certificate authorities: without it npx and uvx cannot fetch anything behind a company's
        # proxy.
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("NO_PROXY", "no_proxy"),
    }
)
"""Names that every server gets."""

PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})
"""Names that every server gets unless their URL holds a user or a password, which `inherit_env` may name."""


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
