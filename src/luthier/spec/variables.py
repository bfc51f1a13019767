"""What an entry may add to the environment of its server, and what nobody may set.

An entry may add anything but the names by which an interpreter, a loader or a package manager can be made to
run or fetch code before the server's own, or that choose which program is run.
"""

from __future__ import annotations

import re

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

# Passed on as they are, and never set by an entry: in these folders lie settings and code that interpreters
# and package managers take up by themselves (`usercustomize`, `.npmrc`, `uv.toml`).
_FOLDERS = frozenset(
    {"HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"}
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


def name_fault(name: str) -> str:
    """Why an entry may not pass on that name; empty when it may."""
    if not _NAME.fullmatch(name):
        return "is not a name of an environment variable"
    if _REFUSED.fullmatch(name) and name not in _HARMLESS:
        return "decides what code is run or fetched, so no entry may set it"
    return ""


def setting_fault(name: str) -> str:
    """Why an entry may not give that name a value; empty when it may."""
    if name.upper() in _FOLDERS:
        return "decides where settings and code are looked for: it is passed on, and no entry may set it"
    return name_fault(name)


def value_fault(value: str) -> str:
    """Why a value cannot be passed on; empty when it can."""
    if "\0" in value:
        return "holds a NUL"
    if value.startswith("() {"):
        return "is a shell function"
    return ""
