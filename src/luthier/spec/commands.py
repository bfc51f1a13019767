"""What a command that starts a server may be given: a script, a module, a package, never code or its source.

Every interpreter and package runner that we know has its own short list of options that may stand before
the script, module or package; what is not in the list is refused, so a new option of theirs opens no door.
What stands behind belongs to the server. A command that we do not know, which the operator listed, is the
operator's own word.
"""

from __future__ import annotations

import posixpath
import re
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    _Rule = Callable[[Sequence[str]], "Plan | ArgumentFault"]


class ArgumentFault(msgspec.Struct, frozen=True):
    """An argument that is refused: its index (-1: there is none where one is needed) and why."""

    index: int
    message: str


class Plan(msgspec.Struct, frozen=True):
    """What an accepted argument list comes to: the index of the script or module that is run, if any."""

    script: int | None = None
    module: int | None = None


class _Options(msgspec.Struct, frozen=True):
    """Options that may precede: `flags` stand alone, `valued` take a value that must match, joined or not."""

    flags: frozenset[str]
    valued: dict[str, re.Pattern[str]]
    letters: str = ""  # short flags that may be bundled behind one dash


def is_allowed(command: str, allowed: Collection[str]) -> bool:
    """Whether it stands in the list, and is a bare name: the list opens no path."""
    return command in allowed and "/" not in command and command not in ("", ".", "..")


def examine(command: str, args: Sequence[str]) -> Plan | ArgumentFault:
    """Whether that command may be given those arguments."""
    for index, argument in enumerate(args):
        if "\0" in argument:
            return ArgumentFault(index, "holds a NUL")
    rule = _rule(command)
    return Plan() if rule is None else rule(args)


MODULES = ("mcp_server_*", "*_mcp_server", "*_mcp")
"""What a module is called behind -m of a launch profile, where the project does not list others."""


def harden(
    command: str, args: Sequence[str], holes: Collection[int] = (), modules: Collection[str] = MODULES
) -> Plan | ArgumentFault:
    """Whether a launch profile may start that command so: Python isolated, Node, or no interpreter at all.

    `holes` are the indexes of arguments that are not settled yet; none of them may decide what is run.
    `modules` are patterns for those that -m may run.
    """
    rule = _rule(command.lower())
    if rule not in (None, _python, _node):
        return ArgumentFault(-1, "is a shell, a package runner or the like, which no profile may start")
    plan = examine(command.lower(), args)
    if isinstance(plan, ArgumentFault) or rule is None:
        return plan
    end = plan.module if plan.module is not None else plan.script
    head = args[: (end or 0) + 1]
    for index in range(len(head)):
        if index in holes:
            return ArgumentFault(index, "has a hole where it is decided what is run")
    if plan.script is not None and not _is_settled(args[plan.script]):
        return ArgumentFault(plan.script, "is not an absolute path without `..`")
    if plan.module is not None and not _is_listed(args[plan.module], modules):
        return ArgumentFault(plan.module, "is a module that `allowed_modules` does not list")
    if rule is _python and not any("I" in _letters(argument) for argument in head):
        return ArgumentFault(-1, "needs -I, so that neither variables nor the folder it stands in add code")
    return plan


def _is_listed(argument: str, modules: Collection[str]) -> bool:
    joined = _DASH_M.fullmatch(argument)
    name = joined[1] if joined else argument
    return any(fnmatchcase(name, pattern) for pattern in modules)


def _is_settled(path: str) -> bool:
    return path.startswith("/") and posixpath.normpath(path) == path


def _letters(argument: str) -> str:
    """The flags that are bundled at the beginning of an argument."""
    found = re.match(rf"-([{_PYTHON.letters}]+)", argument)
    return found[1] if found else ""


def _rule(command: str) -> _Rule | None:
    return next((rule for pattern, rule in _RULES if pattern.fullmatch(command)), None)


# Interpreters

_PYTHON = _Options(
    flags=frozenset(),
    letters="uBIEsSOPqb",
    valued={
        "-X": re.compile(r"(?:utf8|dev|faulthandler|no_debug_ranges|importtime)(?:=[01])?"),
        "-W": re.compile(r"(?:default|error|always|module|once|ignore)"),
    },
)
_NODE = _Options(
    flags=frozenset(
        {
            *(
                "--no-warnings",
                "--no-deprecation",
                "--trace-warnings",
                "--trace-deprecation",
                "--trace-uncaught",
            ),
            *("--enable-source-maps", "--use-system-ca", "--use-bundled-ca", "--use-openssl-ca", "--jitless"),
            *("--experimental-strip-types", "--experimental-transform-types", "--expose-gc"),
        }
    ),
    valued={
        "--max-old-space-size": re.compile(r"\d+"),
        "--max-semi-space-size": re.compile(r"\d+"),
        "--stack-trace-limit": re.compile(r"\d+"),
        "--max-http-header-size": re.compile(r"\d+"),
        "--dns-result-order": re.compile(r"ipv4first|ipv6first|verbatim"),
        "--unhandled-rejections": re.compile(r"strict|warn|none|throw|warn-with-error-codes"),
    },
)
_DASH_M = re.compile(rf"-[{_PYTHON.letters}]*m(.*)", re.DOTALL)
_RUNS_ITS_ARGUMENTS = frozenset(
    {"pip", "pytest", "IPython", "ipykernel", "coverage", "debugpy", "uv", "pipx", "nox"}
)


def _python(args: Sequence[str]) -> Plan | ArgumentFault:
    index = 0
    while index < len(args):
        argument = args[index]
        if module := _DASH_M.fullmatch(argument):
            return _module(args, index, module[1])
        if not argument.startswith("-"):
            return _script(args, index)
        step = _option(_PYTHON, args, index)
        if isinstance(step, ArgumentFault):
            return step
        index += step
    return ArgumentFault(-1, "names no script and no module, so it would read its code from us")


def _module(args: Sequence[str], index: int, joined: str) -> Plan | ArgumentFault:
    at, module = (index, joined) if joined else (index + 1, _at(args, index + 1))
    top = module.partition(".")[0]
    if not re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", module):
        if not module:
            return ArgumentFault(-1, "needs the name of a module behind -m")
        return ArgumentFault(at, "is not the name of a module")
    if top in sys.stdlib_module_names or top in _RUNS_ITS_ARGUMENTS:
        return ArgumentFault(at, f"is {top}, a module that is no server: it runs what it is given")
    return Plan(module=at)


def _node(args: Sequence[str]) -> Plan | ArgumentFault:
    index = 0
    while index < len(args) and args[index].startswith("-"):
        if args[index] == "--":
            index += 1
            break
        step = _option(_NODE, args, index)
        if isinstance(step, ArgumentFault):
            return step
        index += step
    if index >= len(args):
        return ArgumentFault(-1, "names no script, so it would read its code from us")
    if args[index] == "inspect":
        return ArgumentFault(index, "starts a debugger")
    return _script(args, index)


def _script(args: Sequence[str], index: int) -> Plan | ArgumentFault:
    script = args[index]
    if script.startswith(("/dev/", "/proc/")) or not script.strip():
        return ArgumentFault(index, "is no script")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", script):
        return ArgumentFault(index, "is a URL; a script is a file")
    return Plan(script=index)


# Package runners

# What ends like an archive is a file to them, wherever it stands, and so is a version that begins with a dot
# (npm) or is none (uv, which takes `name@x` for the folder x).
_NO_FILE = r"(?!(?i:.*\.(?:tgz|tar|tar.\w+|tbz2?|txz|tlz|zip|whl|egg)(?:@.*)?$))"
_NPM_NAME = r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*"
_NPM = re.compile(rf"{_NO_FILE}{_NPM_NAME}(?:@[\w^~<>=*][\w.^~<>=*+-]*)?")
_PYPI_VERSION = r"(?:latest|\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)"
_PYPI = re.compile(
    rf"{_NO_FILE}[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._,\s-]*\])?(?:@{_PYPI_VERSION}"
    r"|\s*(?:==|>=|<=|~=|!=|<|>)\s*[\w.*+!-]+(?:\s*,\s*(?:==|>=|<=|~=|!=|<|>)\s*[\w.*+!-]+)*)?"
)
_NPX = _Options(
    flags=frozenset(
        {
            *("-y", "--yes", "-q", "--quiet", "-s", "--silent", "--no-install", "--no", "--offline"),
            *(
                "--prefer-offline",
                "--prefer-online",
                "--ignore-scripts",
                "--no-update-notifier",
                "--no-audit",
            ),
            "--no-fund",
        }
    ),
    valued={
        "-p": _NPM,
        "--package": _NPM,
        "--loglevel": re.compile(r"silent|error|warn|notice"),
    },
)
_UVX = _Options(
    flags=frozenset(
        {
            *(
                "-q",
                "--quiet",
                "--offline",
                "--isolated",
                "--no-progress",
                "--native-tls",
                "--no-cache",
                "-n",
            ),
            *("-U", "--upgrade", "--refresh", "--no-config", "--no-env-file", "--managed-python"),
            *("--no-managed-python", "--no-build", "--verbose", "-v"),
        }
    ),
    valued={
        "--from": _PYPI,
        "--with": _PYPI,
        "-w": _PYPI,
        "-p": re.compile(r"(?:cpython@?|python)?\d+(?:\.\d+){0,2}"),
        "--python": re.compile(r"(?:cpython@?|python)?\d+(?:\.\d+){0,2}"),
    },
)
# Packages that are interpreters, shells or runners themselves: what follows them would be code after all.
_INTERPRETERS = re.compile(
    r"(?:i|b)?python[\d.]*w?|pypy[\d.]*|node|nodejs|npm|npx|pnpm|yarn|bun|bunx|deno|uv|uvx|pip|pipx"
    r"|ts-node(?:-\w+)?|tsx|jiti|esno|esbuild-runner|esm|babel-node|@babel/node|coffee(?:script)?|zx|shx|shelljs"
    r"|sh|bash|dash|zsh|ksh|fish|busybox|env|xargs|cross-env(?:-shell)?|concurrently|nodemon|pm2|pytest|xonsh"
    # Programs of the system that run others: behind `-p` stands any command, not only one of a package.
    r"|find|tar|g?make|git|ssh|scp|rsync|sed|[mn]awk|vim?|nvim|emacs|ed|ex|gdb|lldb|[sl]trace|watch|parallel|flock"
    r"|chroot|unshare|nsenter|systemd-run|at|batch|docker|podman|socat|expect|r|rscript|julia|less|man|openssl"
    r"|su|runuser|setpriv|ionice|taskset|chrt|prlimit|screen|tmux"
)


def _npx(args: Sequence[str]) -> Plan | ArgumentFault:
    return _package(_NPX, args, _NPM, lambda name: re.sub(r"(?<=.)@.*", "", name))


def _uvx(args: Sequence[str]) -> Plan | ArgumentFault:
    return _package(_UVX, args, _PYPI, lambda name: re.split(r"[@\[=<>~!\s]", name, maxsplit=1)[0])


def _package(
    options: _Options, args: Sequence[str], spelling: re.Pattern[str], bare: Callable[[str], str]
) -> Plan | ArgumentFault:
    index = 0
    while index < len(args) and args[index].startswith("-"):
        if args[index] == "--":
            index += 1
            break
        step = _option(options, args, index)
        if isinstance(step, ArgumentFault):
            return step
        index += step
    if index >= len(args):
        return ArgumentFault(-1, "names no package")
    if not spelling.fullmatch(args[index]):
        return ArgumentFault(index, "is not the bare name of a package, with a version or without")
    name = bare(args[index]).lower()
    if _INTERPRETERS.fullmatch(name) or _rule(name) is not None:
        return ArgumentFault(index, "is no server: it runs what it is given")
    return Plan()


# Commands that we know and that no rule makes safe, should an operator list them

_CODE = re.compile(r"-\w*[ce]\w*|--(?:eval|print|command|call|exec|require|import|loader|run)(?:=.*)?")
_SOURCE = re.compile(
    r"--(?:index(?:-url)?|extra-index-url|default-index|find-links|registry|spec|from|with(?:-\w+)?|editable"
    r"|pip-args|requirements?|project|directory|config(?:-file)?|env-file)(?:=.*)?"
    r"|(?:git\+|https?:|file:).*"
)


def _shell(args: Sequence[str]) -> Plan | ArgumentFault:
    for index, argument in enumerate(args):
        if not argument.startswith(("-", "+")):
            return _script(args, index)
        if not re.fullmatch(r"-[eux]+|--(?:norc|noprofile|posix)", argument):
            return ArgumentFault(index, _NOT_LISTED)
    return ArgumentFault(-1, "names no script, so it would read its code from us")


def _other_interpreter(args: Sequence[str]) -> Plan | ArgumentFault:
    return _without(args, _CODE, "may hold code")


def _other_runner(args: Sequence[str]) -> Plan | ArgumentFault:
    return _without(args, _SOURCE, "says where a package comes from")


def _without(args: Sequence[str], refused: re.Pattern[str], why: str) -> Plan | ArgumentFault:
    for index, argument in enumerate(args):
        if refused.fullmatch(argument):
            return ArgumentFault(index, why)
    return Plan()


def _wrapper(args: Sequence[str]) -> ArgumentFault:  # noqa: ARG001  (all rules are asked alike)
    return ArgumentFault(-1, "starts any other command, so it cannot be allowed")


_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = (
    (re.compile(r"(?:python|pypy)[\d.]*w?"), _python),
    (re.compile(r"node(?:js)?"), _node),
    (re.compile(r"npx|bunx|pnpx"), _npx),
    (re.compile(r"uvx"), _uvx),
    (re.compile(r"(?:ba|da|z|k|a|c|tc|fi)?sh"), _shell),
    (
        re.compile(r"(?:perl|ruby|php|lua|deno|bun|osascript|pwsh|powershell|awk|gawk|tclsh)[\d.]*"),
        _other_interpreter,
    ),
    (re.compile(r"uv|pipx|pip[\d.]*|npm|pnpm|yarn|poetry|conda|hatch|pdm"), _other_runner),
    (
        re.compile(
            r"env|sudo|doas|nohup|nice|timeout|time|xargs|setsid|stdbuf|script|exec|eval|command|busybox"
        ),
        _wrapper,
    ),
)

_NOT_LISTED = "is not an option that a server may be started with"


def _option(options: _Options, args: Sequence[str], index: int) -> int | ArgumentFault:
    """How many arguments the option at `index` takes up."""
    argument = args[index]
    if argument in options.flags or _bundled(options, argument):
        return 1
    for name, value, taken in _readings(options, args, index):
        if value is None:
            return ArgumentFault(-1, f"{name} needs a value")
        if options.valued[name].fullmatch(value):
            return taken
        return ArgumentFault(index + taken - 1, f"is no value that {name} may have")
    return ArgumentFault(index, _NOT_LISTED)


def _bundled(options: _Options, argument: str) -> bool:
    letters = argument[1:]
    return bool(letters) and argument[1] != "-" and all(letter in options.letters for letter in letters)


def _readings(options: _Options, args: Sequence[str], index: int) -> Iterator[tuple[str, str | None, int]]:
    """The option, its value and how many arguments they take: `--name value`, `--name=value` or `-xvalue`."""
    argument = args[index]
    name, equals, value = argument.partition("=")
    if argument in options.valued:
        yield argument, _at(args, index + 1) or None, 2
    elif argument.startswith("--") and equals and name in options.valued:
        yield name, value, 1
    elif not argument.startswith("--") and argument[:2] in options.valued:
        yield argument[:2], argument[2:].removeprefix("="), 1


def _at(args: Sequence[str], index: int) -> str:
    return args[index] if index < len(args) else ""
