"""What may be started: every line of these tables is a command with its arguments, and the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luthier.spec.commands import ArgumentFault, Plan, examine, harden

ALLOWED: list[tuple[str, list[str]]] = [
    # a script, and whatever it is given
    ("python", ["server.py"]),
    ("python3", ["-u", "server.py", "-c", "whatever the script makes of it"]),
    ("python3.12", ["-uBI", "/srv/tools/server.py", "--index-url", "x"]),
    ("python", ["-X", "utf8", "-W", "ignore", "server.py"]),
    ("python", ["-Xutf8=1", "-Werror", "server.py"]),
    ("node", ["build/index.js", "-e", "1"]),
    ("node", ["--no-warnings", "--max-old-space-size=4096", "index.mjs"]),
    ("node", ["--max-old-space-size", "4096", "--", "index.mjs"]),
    # a module
    ("python", ["-m", "mcp_server_time"]),
    ("python3", ["-m", "mcp_server_git.__main__", "-c", "x"]),
    ("python3", ["-Im", "mcp_server_git"]),
    ("python", ["-m", "McpServer.Main"]),
    ("python", ["-mmcp_server_time", "--local-timezone", "UTC"]),
    # a package
    ("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]),
    ("npx", ["--yes", "--silent", "@modelcontextprotocol/server-everything@2026.1.0", "stdio"]),
    ("npx", ["@brave/brave-search-mcp-server@latest", "--transport", "stdio", "-c", "config.json"]),
    ("npx", ["-y", "-p", "@scope/tools@^1.2.3", "tool-server"]),
    ("npx", ["-y", "--package=@scope/tools", "--", "tool-server"]),
    ("npx", ["-y", "-p=@scope/tools", "tool-server"]),
    ("npx", ["mcp-server", "--registry", "what the server makes of it"]),
    ("npx", ["-y", "server@1.2.3-beta.1+build"]),
    ("npx", ["-y", "socket.io@^4"]),
    ("uvx", ["mcp-server-git"]),
    ("uvx", ["mcp-server-git@latest"]),
    ("uvx", ["mcp-server-git@1.2.0rc1"]),
    ("uvx", ["mcp-server-git@2026.1.post1.dev2"]),
    ("uvx", ["mcp-server-time@2026.1.0", "--local-timezone", "UTC"]),
    ("uvx", ["--from", "mcp-server-git==2025.1.2", "mcp-server-git", "--repository", "."]),
    ("uvx", ["--from", "package[extra,more]>=1,<2", "tool"]),
    ("uvx", ["--with", "pydantic<3", "--python", "3.12", "-q", "mcp-server-fetch"]),
    # what an operator lists and we do not know is the operator's own word
    ("mcp-server-git", ["-c", "config.toml"]),
    ("docker", ["run", "-i", "--rm", "mcp/git"]),
    # interpreters that an operator lists
    ("bash", ["-e", "server.sh", "-c", "x"]),
    ("deno", ["run", "--allow-net", "server.ts"]),
    ("uv", ["run", "--locked", "server"]),
]

REFUSED: list[
    tuple[str, list[str], int]
] = [  # the index of the argument that is refused; -1: something is missing
    # code
    ("python", ["-c", "import os"], 0),
    ("python3", ["-cimport os"], 0),
    ("python3", ["-Ic", "import os"], 0),
    ("python", ["-u", "-ic", "1"], 1),
    ("python", ["-i", "server.py"], 0),
    ("python", ["-x", "server.py"], 0),
    ("python", ["-"], 0),
    ("python", [], -1),
    ("python", ["-u"], -1),
    ("python", ["/dev/stdin"], 0),
    ("python", ["/proc/self/fd/0"], 0),
    ("python", [""], 0),
    ("python", ["  "], 0),
    ("python", ["-W", "ignore::antigravity.Category", "server.py"], 1),
    ("python", ["-Wignore:x:antigravity.Category", "server.py"], 0),
    ("python", ["-X", "presite=x", "server.py"], 1),
    ("python", ["-X"], -1),
    ("python", ["--check-hash-based-pycs", "never", "server.py"], 0),
    ("python", ["-m"], -1),
    ("python", ["-m", "-c"], 1),
    ("python", ["-m", "../evil"], 1),
    ("python", ["-m", "timeit", "import os"], 1),
    ("python", ["-mtimeit", "import os"], 0),
    ("python", ["-Bm", "pdb", "x.py"], 1),
    ("python", ["-m", "unittest.__main__", "x"], 1),
    ("python", ["-m", "trace", "--trace", "x.py"], 1),
    ("python", ["-m", "cProfile", "x.py"], 1),
    ("python", ["-m", "doctest", "x.txt"], 1),
    ("python", ["-m", "code"], 1),
    ("python", ["-m", "asyncio"], 1),
    ("python", ["-m", "pip", "install", "x"], 1),
    ("pypy3", ["-c", "1"], 0),
    ("node", ["-e", "1"], 0),
    ("node", ["--eval", "1"], 0),
    ("node", ["--eval=1"], 0),
    ("node", ["-p", "1"], 0),
    ("node", ["-pe", "1"], 0),
    ("node", ["--print", "1"], 0),
    ("node", ["-r", "./x.js", "index.js"], 0),
    ("node", ["--require=./x.js", "index.js"], 0),
    ("node", ["--import", "data:text/javascript,1", "index.js"], 0),
    ("node", ["--loader", "./x.mjs", "index.js"], 0),
    ("node", ["--experimental-loader=./x.mjs", "index.js"], 0),
    ("node", ["--env-file=.env", "index.js"], 0),
    ("node", ["--test"], 0),
    ("node", ["--run", "x"], 0),
    ("node", ["--inspect=0.0.0.0", "index.js"], 0),
    ("node", ["inspect", "index.js"], 0),
    ("node", ["--build-snapshot", "x.js"], 0),
    ("node", ["-i"], 0),
    ("node", ["-"], 0),
    ("node", [], -1),
    ("node", ["--"], -1),
    ("node", ["data:text/javascript,1"], 0),
    ("node", ["https://example.com/x.js"], 0),
    ("node", ["HTTPS://example.com/x.js"], 0),
    ("node", ["--max-old-space-size=1;x", "index.js"], 0),
    ("node", ["--max-old-space-size", "x", "index.js"], 1),
    ("npx", ["-c", "touch x"], 0),
    ("npx", ["--call=touch x"], 0),
    ("npx", ["--call", "touch x"], 0),
    ("npx", ["-yc", "touch x"], 0),
    ("npx", ["--node-options=--require=./x.js", "server"], 0),
    ("npx", ["--script-shell=./x.sh", "server"], 0),
    ("npx", ["-y", "node", "-e", "1"], 1),
    ("npx", ["node@22", "-e", "1"], 0),
    ("npx", ["tsx", "-e", "1"], 0),
    ("npx", ["@babel/node", "-e", "1"], 0),
    ("npx", ["zx"], 0),
    ("uvx", ["python", "-c", "1"], 0),
    ("uvx", ["python3.12", "-c", "1"], 0),
    ("uvx", ["python@3.12", "-c", "1"], 0),
    ("uvx", ["ipython", "-c", "1"], 0),
    ("uvx", ["--from", "mcp-server-git", "python", "-c", "1"], 2),
    ("uvx", ["--from", "x", "bash", "-c", "1"], 2),
    ("uvx", ["--from", "x", "perl", "-e", "1"], 2),
    ("npx", ["-y", "-p", "x", "perl", "-e", "1"], 3),
    ("npx", ["-y", "-p", "x", "find", ".", "-exec", "sh"], 3),
    ("npx", ["-y", "-p", "x", "sudo", "sh"], 3),
    # where a package comes from
    ("npx", ["--registry=https://evil.example", "server"], 0),
    ("npx", ["--registry", "https://evil.example", "server"], 0),
    ("npx", ["--regi=https://evil.example", "server"], 0),
    ("npx", ["--userconfig=./x", "server"], 0),
    ("npx", ["-p", "file:./x", "server"], 1),
    ("npx", ["--package=file:./x", "server"], 0),
    ("npx", ["--package=github:user/repo", "server"], 0),
    ("npx", ["-p"], -1),
    ("npx", ["./server"], 0),
    ("npx", ["/srv/server"], 0),
    ("npx", [".."], 0),
    ("npx", ["user/repo"], 0),
    ("npx", ["github:user/repo"], 0),
    ("npx", ["git+https://example.com/x.git"], 0),
    ("npx", ["https://example.com/x.tgz"], 0),
    ("npx", ["-y", "server.tgz"], 1),
    ("npx", ["-y", "SERVER.TGZ"], 1),
    ("npx", ["-y", "server.tar.gz@1"], 1),
    ("npx", ["server@x.tgz"], 0),
    ("npx", ["@scope/server@x.tar"], 0),
    ("npx", ["server@."], 0),
    ("npx", ["server@.."], 0),
    ("npx", ["server@.hidden"], 0),
    ("npx", ["-p", "server@.", "server"], 1),
    ("npx", ["--package=server.tgz", "server"], 0),
    ("npx", ["server@npm:other"], 0),
    ("npx", ["server@file:../x"], 0),
    ("npx", ["server@https://example.com/x.tgz"], 0),
    ("npx", [], -1),
    ("npx", ["-y"], -1),
    ("npx", ["-y", "--"], -1),
    ("bunx", ["--bun", "server"], 0),
    ("uvx", ["--index-url", "https://evil.example/simple", "server"], 0),
    ("uvx", ["--index-url=https://evil.example/simple", "server"], 0),
    ("uvx", ["-i", "https://evil.example/simple", "server"], 0),
    ("uvx", ["--extra-index-url=https://evil.example/simple", "server"], 0),
    ("uvx", ["--default-index=https://evil.example/simple", "server"], 0),
    ("uvx", ["--index=https://evil.example/simple", "server"], 0),
    ("uvx", ["-f", "./wheels", "server"], 0),
    ("uvx", ["--find-links=./wheels", "server"], 0),
    ("uvx", ["--from", "git+https://example.com/x.git", "server"], 1),
    ("uvx", ["--from=git+https://example.com/x.git", "server"], 0),
    ("uvx", ["--from", "./x", "server"], 1),
    ("uvx", ["--from", "/srv/x", "server"], 1),
    ("uvx", ["--from", "x @ https://example.com/x.whl", "server"], 1),
    ("uvx", ["--with", "git+https://example.com/x.git", "server"], 1),
    ("uvx", ["--with-editable", "./x", "server"], 0),
    ("uvx", ["--with-requirements", "x.txt", "server"], 0),
    ("uvx", ["--env-file", "x", "server"], 0),
    ("uvx", ["--config-file", "x", "server"], 0),
    ("uvx", ["--directory", "/srv", "server"], 0),
    ("uvx", ["--python", "/srv/evil-python", "server"], 1),
    ("uvx", ["-p", "./python", "server"], 1),
    ("uvx", ["git+https://example.com/x.git"], 0),
    ("uvx", ["server-1.0-py3-none-any.whl"], 0),
    ("uvx", ["server.tar.gz"], 0),
    ("uvx", ["server@.."], 0),
    ("uvx", ["server@folder"], 0),
    ("uvx", ["server@1folder"], 0),
    ("uvx", ["--from", "server@folder", "server"], 1),
    ("uvx", ["--with", "x.whl", "server"], 1),
    ("uvx", ["."], 0),
    ("uvx", ["https://example.com/x.whl"], 0),
    ("uvx", [], -1),
    # what an operator lists, and we know better
    ("bash", ["-c", "x"], 0),
    ("sh", ["-ec", "x"], 0),
    ("sh", ["-s"], 0),
    ("sh", [], -1),
    ("bash", ["--rcfile", "x", "y"], 0),
    ("bash", ["+B", "server.sh"], 0),
    ("perl", ["-e", "1"], 0),
    ("ruby", ["-ne", "1"], 0),
    ("deno", ["--eval=1"], 0),
    ("uv", ["run", "--with", "x", "y"], 1),
    ("uv", ["tool", "run", "--from", "x", "y"], 2),
    ("pipx", ["run", "--spec", "x", "y"], 1),
    ("pipx", ["run", "git+https://example.com/x"], 1),
    ("env", ["python", "-c", "1"], -1),
    ("sudo", ["server"], -1),
    ("xargs", [], -1),
    # what no process can be given
    ("python", ["server.py", "a\0b"], 1),
    ("mcp-server-git", ["\0"], 0),
]


@pytest.mark.parametrize(
    ("command", "args"), ALLOWED, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)
def test_scripts_modules_and_packages_are_started_with_their_own_arguments(
    command: str, args: list[str]
) -> None:
    assert isinstance(examine(command, args), Plan)


@pytest.mark.parametrize(
    ("command", "args", "index"),
    REFUSED,
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_code_and_package_sources_are_refused_where_they_stand(
    command: str, args: list[str], index: int
) -> None:
    verdict = examine(command, args)
    assert isinstance(verdict, ArgumentFault)
    assert verdict.index == index
    assert verdict.message


def test_the_script_to_be_run_is_named() -> None:
    assert examine("python", ["-u", "-X", "utf8", "server.py", "x"]) == Plan(script=3)
    assert examine("node", ["--no-warnings", "--", "index.js"]) == Plan(script=2)
    assert examine("python", ["-m", "server"]) == Plan(module=1)


NO_PROFILE = "is a shell, a package runner or the like, which no profile may start"
HOLE = "has a hole where it is decided what is run"
NOT_ABSOLUTE = "is not an absolute path without `..`"
NOT_ISOLATED = "needs -I, so that neither variables nor the folder it stands in add code"


@pytest.mark.parametrize(
    ("command", "args", "holes", "verdict"),
    [
        ("python", ["-I", "-m", "server", "x"], {3}, Plan(module=2)),
        ("python3.12", ["-uI", "/srv/x.py", "-I"], {2}, Plan(script=1)),
        ("PYTHON", ["-I", "-X", "utf8", "/srv/x.py"], set(), Plan(script=3)),
        ("node", ["/srv/index.js", "x"], {1}, Plan(script=0)),
        ("mcp-server-git", ["-c", "x"], {0, 1}, Plan()),
        ("python", ["-I", "-m", "server"], {2}, ArgumentFault(2, HOLE)),
        ("python", ["-I", "-m", "server"], {0}, ArgumentFault(0, HOLE)),
        ("python", ["-I", "/srv/x.py"], {1}, ArgumentFault(1, HOLE)),
        ("node", ["/srv/index.js"], {0}, ArgumentFault(0, HOLE)),
        ("python", ["-I", "x.py"], set(), ArgumentFault(1, NOT_ABSOLUTE)),
        ("python", ["-I", "/srv/../x.py"], set(), ArgumentFault(1, NOT_ABSOLUTE)),
        ("node", ["/srv//index.js"], set(), ArgumentFault(0, NOT_ABSOLUTE)),
        ("python", ["-m", "server"], set(), ArgumentFault(-1, NOT_ISOLATED)),
        ("python", ["-uE", "/srv/x.py"], set(), ArgumentFault(-1, NOT_ISOLATED)),
        ("python", ["/srv/x.py", "-I"], set(), ArgumentFault(-1, NOT_ISOLATED)),
        ("python", ["-c", "x"], set(), examine("python", ["-c", "x"])),
        ("bash", ["/srv/x.sh"], set(), ArgumentFault(-1, NO_PROFILE)),
        ("BASH", ["/srv/x.sh"], set(), ArgumentFault(-1, NO_PROFILE)),
        ("npx", ["server"], set(), ArgumentFault(-1, NO_PROFILE)),
        ("sudo", ["server"], set(), ArgumentFault(-1, NO_PROFILE)),
        ("perl", ["/srv/x.pl"], set(), ArgumentFault(-1, NO_PROFILE)),
    ],
)
def test_a_profile_starts_python_isolated_node_or_no_interpreter_and_settles_what_is_run(
    command: str, args: list[str], holes: set[int], verdict: Plan | ArgumentFault
) -> None:
    assert harden(command, args, holes, ["server"]) == verdict


DANGEROUS = st.sampled_from(
    [
        "-c",
        "-e",
        "-p",
        "-i",
        "--eval",
        "--call",
        "--registry",
        "--index-url",
        "--from",
        "--require",
        "--import",
        "-",
    ]
)


@given(
    st.sampled_from(["python", "node", "npx", "uvx"]),
    st.lists(DANGEROUS | st.text(st.characters(codec="utf-8"), max_size=8), max_size=6),
)
def test_what_is_accepted_has_a_script_a_module_or_a_package_before_anything_dangerous(
    command: str, args: list[str]
) -> None:
    verdict = examine(command, args)
    if isinstance(verdict, Plan):
        if verdict.script is not None:
            before = args[: verdict.script]
        elif command == "python":
            before = args[: next(i for i, argument in enumerate(args) if "m" in argument)]
        else:
            before = []
        assert not {"-c", "-e", "-i", "-", "--eval", "--require", "--import"} & set(before)
        assert args
        assert args[0] not in {"-c", "-e", "-i", "-", "--eval", "--call", "--registry", "--index-url"}
