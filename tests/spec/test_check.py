"""`luthier check`: every fault of every file, each at its place; nothing is started, imported or resolved."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from luthier.spec import (
    ServerEntry,
    check_ensemble,
    check_paths,
    ensemble_files,
    launch_faults,
    load_project,
    read_ensemble,
    read_project,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Folder:
    """A folder of files, checked from inside."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self.root = root
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def told(self, *paths: str, environ: Mapping[str, str] | None = None) -> list[str]:
        """Faults with their files told from the folder, carets left out."""
        found = check_paths([self.root / path for path in paths] or [self.root], environ=environ or {})
        lines = [("warning " if fault.warning else "") + str(fault).partition("\n")[0] for fault in found]
        return [line.replace(f"{self.root}{os.sep}", "").replace(str(self.root), ".") for line in lines]


SERVERS = "mcpServers:\n  git: {command: python, args: [-m, mcp_server_git]}\n"
CALL = """
agents:
  - name: log
    operation: tools
    config: {mcp: git, tool: git_log}
"""


def test_a_good_project_has_no_faults(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": SERVERS,
            "ensembles/a.yaml": CALL,
            "ensembles/b.yml": "agents: [{name: x, operation: ensemble, config: {name: a}}]",
            "ensembles/notes.txt": "no: [ensemble",
        },
    )
    assert folder.told() == []
    assert folder.told("luthier.yaml") == []
    assert folder.told("ensembles") == []
    assert folder.told("ensembles/b.yml") == []
    assert [path.name for path in ensemble_files(tmp_path)] == ["a.yaml", "b.yml"]


def test_what_lies_in_the_place_of_a_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": "{}", "kept.yaml": "agents: 1", "scripts/a.py": ""})
    (tmp_path / "ensembles").mkdir()
    os.mkfifo(tmp_path / "ensembles" / "pipe.yaml")
    (tmp_path / "ensembles" / "circle.yaml").symlink_to("circle.yaml")
    (tmp_path / "ensembles" / "folder.yaml").mkdir()
    (tmp_path / "ensembles" / "link.yaml").symlink_to("../kept.yaml")
    (tmp_path / "ensembles" / "nothing.yaml").symlink_to("nowhere")
    assert folder.told() == [
        "ensembles/circle.yaml: the file cannot be read: Too many levels of symbolic links",
        "ensembles/folder.yaml: the file cannot be read: Is a directory",
        "ensembles/link.yaml:1:9: `agents` must be a list of steps",
        "ensembles/nothing.yaml: the file cannot be read: No such file or directory",
        "ensembles/pipe.yaml:1:1: the file is empty",
    ]


def test_folders_that_cannot_be_read_are_faults(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": "serve: {prompts: prompts}"})
    for name in ("ensembles", "prompts"):
        (tmp_path / name).symlink_to(name)
    assert folder.told() == [
        "ensembles: the folder cannot be read: Too many levels of symbolic links",
        "warning luthier.yaml:1:18: there is no folder `prompts`",
        "prompts: the folder cannot be read: Too many levels of symbolic links",
    ]


def test_paths_that_go_in_circles_are_told_of_like_those_that_lead_nowhere(tmp_path: Path) -> None:
    script = "agents: [{name: a, operation: code, config: {script: scripts/a/b}}]"
    folder = Folder(
        tmp_path,
        {"luthier.yaml": "storage: {files: circle}\nenv_file: circle", "ensembles/a.yaml": script},
    )
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "scripts").symlink_to("scripts")
    assert folder.told() == [
        "ensembles/a.yaml:1:54: there is no file scripts/a/b.py in .",
        "luthier.yaml:2:11: `circle` cannot be read: Too many levels of symbolic links",
    ]


def test_faults_of_all_files_come_together_in_order(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": "environmant: x\nmcpServers: {git: {}}\n",
            "ensembles/b.yaml": "agents: []\nx: 1\n",
            "ensembles/a.yaml": "a: [\n",
        },
    )
    expected = [
        "ensembles/a.yaml:2:1: ",
        "ensembles/b.yaml:1:9: an ensemble has at least one step",
        "ensembles/b.yaml:2:1: unknown key `x`",
        "luthier.yaml:1:1: unknown key `environmant` (did you mean environment?)",
        "luthier.yaml:2:19: a server needs a `command` or a `url`",
    ]
    assert [line[: len(start)] for line, start in zip(folder.told(), expected, strict=True)] == expected
    assert folder.told("ensembles", "luthier.yaml", ".") == folder.told()


def test_a_project_that_is_no_yaml_does_not_hide_the_faults_of_ensembles(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": "a: b: c\n", "ensembles/a.yaml": "agents: []\n"})
    assert folder.told() == [
        "ensembles/a.yaml:1:9: an ensemble has at least one step",
        "luthier.yaml:1:5: a `: ` cannot stand here (put the text into quotes)",
    ]


def test_a_project_that_is_no_mapping_is_told_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": "[1]", "ensembles/a.yaml": CALL})
    assert folder.told() == ["luthier.yaml:1:1: a project must be a mapping, not a list"]
    Folder(tmp_path, {"luthier.yaml": "servers: 5"})
    assert folder.told() == [
        "luthier.yaml:1:10: `servers` must be a mapping or a list of servers, not a number"
    ]


def test_faults_of_an_ensemble_hide_none_beside_its_project(tmp_path: Path) -> None:
    broken = CALL.replace("mcp: git", "mcp: gti") + "    condition: ${log +}\n    timeout: x\n"
    folder = Folder(tmp_path, {"luthier.yaml": SERVERS + "  bad: oops\n", "ensembles/a.yaml": broken})
    assert folder.told() == [
        "ensembles/a.yaml:5:19: there is no server `gti` in the project (did you mean git?)",
        "ensembles/a.yaml:6:23: the expression ends where a value is expected",
        "ensembles/a.yaml:7:14: `timeout` must be a number of milliseconds, not text",
        "luthier.yaml:3:8: the server `bad` must be a mapping, not text",
    ]
    Folder(tmp_path, {"ensembles/a.yaml": CALL.replace("mcp: git", "mcp: bad")})
    assert folder.told() == ["luthier.yaml:3:8: the server `bad` must be a mapping, not text"]


def test_one_file_is_checked_with_its_project_but_not_its_neighbours(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": "mcpServers: {git: {}}\n",
            "ensembles/a.yaml": CALL.replace("tool:", "tol:"),
            "ensembles/b.yaml": "agents: []\n",
        },
    )
    assert folder.told("ensembles/a.yaml") == [
        "ensembles/a.yaml:5:13: `tool` is missing",
        "ensembles/a.yaml:5:24: unknown key `tol` (did you mean tool?)",
        "luthier.yaml:1:19: a server needs a `command` or a `url`",
    ]


def test_servers_must_be_there(tmp_path: Path) -> None:
    text = CALL.replace("mcp: git", "mcp: gti")
    folder = Folder(tmp_path, {"luthier.yaml": SERVERS, "ensembles/a.yaml": text})
    assert folder.told() == [
        "ensembles/a.yaml:5:19: there is no server `gti` in the project (did you mean git?)"
    ]
    Folder(tmp_path, {"ensembles/a.yaml": CALL.replace("mcp: git", "mcp: zzz")})
    assert folder.told()[0].endswith("`zzz` in the project (it has git)")
    Folder(tmp_path, {"luthier.yaml": "{}"})
    assert folder.told()[0].endswith("`zzz` in the project (it has none)")


def test_an_ensemble_outside_of_every_project_says_so() -> None:
    faults = check_ensemble(read_ensemble(CALL, file="a.yaml"), read_project({}))
    assert [str(fault) for fault in faults] == [
        "a.yaml:5:19: there is no server `git` in the project (there is no luthier.yaml here or above)"
    ]


def test_names_of_servers_that_are_not_there_are_warned_of_wherever_they_are_written(tmp_path: Path) -> None:
    project = """\
mcpServers:
  git: {command: python, args: [-m, git]}
policies:
  rules:
    - {name: good, when: {tool: ["mcp://git/*", "mcp://g*/log", "*", "builtin://http"]}, then: ask}
    - {name: bad, when: {tool: ["mcp://git/*", mcp://gti/log]}, then: deny}
budgets:
  - {per: hour, calls: 1, server: git*}
  - {per: hour, calls: 1, server: web, tool: "mcp://web*/fetch"}
serve:
  tools: {log: mcp://git/log, old: mcp://svn/log}
"""
    said = "fits nothing: there is no server"
    assert Folder(tmp_path, {"luthier.yaml": project}).told() == [
        f"warning luthier.yaml:6:7: `mcp://gti/log` {said} `gti` in the project (did you mean git?)",
        f"warning luthier.yaml:9:35: `web` {said} `web` in the project",
        f"warning luthier.yaml:9:46: `mcp://web*/fetch` {said} `web*` in the project",
        f"warning luthier.yaml:11:36: `mcp://svn/log` {said} `svn` in the project",
    ]


def test_a_bare_list_of_rules_and_a_list_of_offers_are_looked_at_too(tmp_path: Path) -> None:
    project = """\
policies:
  - {when: {tool: mcp://svn/log}, then: deny}
serve:
  tools: [mcp://svn/*]
"""
    told = Folder(tmp_path, {"luthier.yaml": project}).told()
    assert [line.partition(": ")[0] for line in told] == [
        "warning luthier.yaml:2:5",
        "warning luthier.yaml:4:11",
    ]


def test_calls_that_will_fail_are_warned_of(tmp_path: Path) -> None:
    servers = "mcpServers:\n  git: {command: uvx, args: [x], disabled: true, allowed_agents: [reviewer]}\n"
    folder = Folder(tmp_path, {"luthier.yaml": servers, "ensembles/a.yaml": CALL})
    refused = "the server `git` does not admit this ensemble: the call will be refused"
    assert folder.told() == [
        "warning ensembles/a.yaml:5:19: the server `git` is disabled: this step will fail",
        f"warning ensembles/a.yaml:5:19: {refused} (list ensemble:a under its `allowed_agents`)",
    ]
    Folder(tmp_path, {"luthier.yaml": servers.replace("reviewer", '"ensemble:a"').replace("true", "false")})
    assert folder.told() == []


def test_a_server_that_waits_for_approval_is_warned_of_where_it_stands_and_where_it_is_called(
    tmp_path: Path,
) -> None:
    servers = "mcpServers:\n  git: {command: uvx, args: [x], approved: false}\n"
    folder = Folder(tmp_path, {"luthier.yaml": servers, "ensembles/a.yaml": CALL})
    waits, how = "the server `git` waits for approval", "luthier servers approve git"
    assert folder.told() == [
        f"warning ensembles/a.yaml:5:19: {waits}: this step will be refused ({how})",
        f"warning luthier.yaml:2:44: {waits}: it will not start ({how})",
    ]


def test_nested_ensembles_must_be_there_and_get_what_they_need(tmp_path: Path) -> None:
    inner = "inputs: {a: {required: true}, b: {required: true, default: 1}, c: string}\noutputs: 1\n"
    steps = "agents: [{name: x, operation: transform, config: {value: 1}}]\n"
    outer = """
agents:
  - {name: a, operation: ensemble, config: {ensemble: inner}, inputs: {b: 1}}
  - {name: b, operation: ensemble, config: {name: iner}}
  - {name: c, operation: ensemble, config: {name: broken}}
  - {name: d, operation: ensemble, config: {name: inner}}
"""
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": SERVERS,
            "ensembles/inner.yaml": inner + steps,
            "ensembles/outer.yaml": outer,
            "ensembles/broken.yaml": "agents: 1",
        },
    )
    assert folder.told("ensembles/outer.yaml") == [
        "ensembles/outer.yaml:3:71: the ensemble `inner` needs the input `a`",
        "ensembles/outer.yaml:4:51: there is no ensemble `iner` (did you mean inner?)",
    ]


def nested(*names: str) -> str:
    steps = (f"{{name: s{i}, operation: ensemble, config: {{ensemble: {n}}}}}" for i, n in enumerate(names))
    return f"agents: [{', '.join(steps)}]\n"


def test_ensembles_that_run_each_other_are_named_as_a_way(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": "{}",
            "ensembles/a.yaml": nested("b"),
            "ensembles/b.yaml": nested("c"),
            "ensembles/c.yaml": nested("a"),
            "ensembles/over.yaml": nested("c"),
            "ensembles/self.yaml": nested("self"),
        },
    )
    end = "ensembles run each other without end"
    assert folder.told() == [
        f"ensembles/a.yaml:1:50: {end}: a → b → c → a",
        f"ensembles/b.yaml:1:50: {end}: b → c → a → b",
        f"ensembles/c.yaml:1:50: {end}: c → a → b → c",
        f"ensembles/over.yaml:1:50: {end}: c → a → b → c",
        f"ensembles/self.yaml:1:50: {end}: self → self",
    ]


def test_only_names_of_ensembles_are_enough_to_know_that_they_are_there() -> None:
    ensemble = read_ensemble(nested("other", "gone"), file="a.yaml")
    faults = check_ensemble(ensemble, read_project({}), ["other"])
    assert [fault.message for fault in faults] == ["there is no ensemble `gone`"]


def test_two_ensembles_of_one_name_are_a_fault(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": SERVERS,
            "ensembles/a.yaml": "ensemble: one" + CALL,
            "ensembles/b.yaml": "name: one" + CALL,
        },
    )
    assert folder.told() == ["ensembles/b.yaml:1:7: ensembles/a.yaml has the name `one` too"]


CODE = "agents: [{name: x, operation: code, config: {script: scripts/do-it}}]\n"
SCRIPTS = {
    "missing": (None, ["ensembles/a.yaml:1:54: there is no file scripts/do-it.py in ."]),
    "good": ("def do_it(context): ...", []),
    "without a function": (
        "def other(): ...",
        ["ensembles/a.yaml:1:54: it defines no function named run or default or do_it"],
    ),
    "not Python": ("def run(:\n", ["scripts/do-it.py:1:9: scripts/do-it.py is not Python: invalid syntax"]),
    "an argument that nobody runs": ("raise SystemExit('imported')\ndef run(c): ...", []),
    "with a null character": ("def run(c): ...\0", None),
    "too deep for the parser": ("x = " + "(" * 5000 + ")" * 5000, None),
    "too deep for the tree": ("x = " + "-" * 100_000 + "1", None),
}


@pytest.mark.parametrize(("source", "told"), SCRIPTS.values(), ids=SCRIPTS)
def test_scripts_are_parsed_and_not_imported(
    tmp_path: Path, source: str | None, told: list[str] | None
) -> None:
    files = {"luthier.yaml": "{}", "ensembles/a.yaml": CODE}
    folder = Folder(tmp_path, files | ({"scripts/do-it.py": source} if source is not None else {}))
    if told is None:
        assert len(folder.told()) == 1
    else:
        assert folder.told() == told


def test_scripts_that_are_no_text_are_a_fault(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": "{}", "ensembles/a.yaml": CODE, "scripts/do-it.py": ""})
    (tmp_path / "scripts" / "do-it.py").write_bytes(b"\xff")
    assert folder.told() == ["ensembles/a.yaml:1:54: scripts/do-it.py is not UTF-8 text"]


def test_the_environment_must_be_exposed(tmp_path: Path) -> None:
    text = "agents: [{name: x, operation: transform, config: {value: '${env.A} ${env.B}'}}]\n"
    folder = Folder(tmp_path, {"luthier.yaml": "expose_env: [A]\n", "ensembles/a.yaml": text})
    unlisted = "the environment variable `B` is not exposed to ensembles"
    hint = "list B under `expose_env` in luthier.yaml"
    assert folder.told() == [f"ensembles/a.yaml:1:{text.index('env.B') + 1}: {unlisted} ({hint})"]


def test_unset_variables_name_file_key_and_variable_and_cost_only_a_warning(tmp_path: Path) -> None:
    text = """
mcpServers:
  git:
    command: python
    args: ["--token=${env.A}", "${B:-default}"]
    env: {C: "x${C}", D: "$${D}"}
  web:
    url: https://${HOST}/mcp
    auth: {type: oauth, clientId: i, clientSecret: "${env:SECRET}", tokenUrl: https://t}
  off: {command: python, args: ["${E}"], disabled: true}
"""
    folder = Folder(tmp_path, {"luthier.yaml": text})
    unset = [
        ("5:21", "args[0]", "A", "git"),
        ("6:16", "env.C", "C", "git"),
        ("8:18", "url", "HOST", "web"),
        ("9:52", "auth.clientSecret", "SECRET", "web"),
    ]
    lines = [
        f"warning luthier.yaml:{place}: `{key}` needs the environment variable {name}, which is not set:"
        f" the server `{server}` will not start"
        for place, key, name, server in unset
    ]
    assert folder.told() == lines
    assert folder.told(environ={"A": "1", "HOST": "h", "SECRET": ""}) == [lines[1]]


def test_names_of_the_env_file_count_as_set(tmp_path: Path) -> None:
    servers = 'env_file: .env\nmcpServers: {git: {command: python, args: ["${A}"]}}\n'
    assert Folder(tmp_path, {"luthier.yaml": servers, ".env": "A=1"}).told() == []


def test_references_that_cannot_be_are_told_by_kind(tmp_path: Path) -> None:
    text = """
mcpServers:
  git:
    command: python
    args: ["${file:/run/x}", "${what is this}"]
    env: {A: "${keyring:a/b}", B: "${secret:b}", C: "${"}
"""
    none = "is not a reference (write ${env.NAME}, ${NAME} or ${NAME:-default}; $${ writes ${ itself)"
    assert Folder(tmp_path, {"luthier.yaml": text}).told() == [
        "luthier.yaml:5:12: file references may stand only under `headers`, `env`, `auth`, `secret`",
        f"luthier.yaml:5:30: `${{what is this}}` {none}",
        f"luthier.yaml:6:53: `${{` {none}",
    ]


def test_secrets_in_the_file_are_warned_of_and_refused_in_production(tmp_path: Path) -> None:
    text = """
mcpServers:
  a: {url: https://x, auth: {type: bearer, token: hunter2}, secret: hunter2}
  b: {url: http://x, auth: {type: oauth, clientId: i, clientSecret: hunter2, tokenUrl: "https://u"}}
  c: {url: https://x, auth: {type: oauth, client_id: i, client_secret: hunter2, token_url: "https://u"}}
"""
    folder = Folder(tmp_path, {"luthier.yaml": text})
    hint = "a secret stands in the file (write ${env.NAME} and set the variable, or ${secret:NAME})"
    places = ["3:51", "3:69", "4:69", "5:72"]
    assert folder.told() == [f"warning luthier.yaml:{place}: {hint}" for place in places]
    Folder(tmp_path, {"luthier.yaml": text.replace("\n", "environment: production\n", 1)})
    told = folder.told()
    assert "hunter2" not in " ".join(told)
    assert [line.partition(": ")[2] for line in told] == [
        hint,
        hint,
        "`url` is not https, which is not allowed in production (write https://)",
        hint,
        hint,
    ]


def test_urls_that_may_not_be_asked_are_faults_as_far_as_they_are_spelled_out(tmp_path: Path) -> None:
    text = """
mcpServers:
  a: {url: "http://127.1:8000/mcp", auth: {type: oauth, interactive: true, issuer: "https://me@auth.example"}}
  b: {url: "https://10.0.0.1/", auth: {type: oauth, interactive: true, issuer: "https://auth.localhost"}}
  c: {url: "http://10.0.0.1/", allow_private: true}
  d: {url: "https://${HOST}/"}
"""
    folder = Folder(tmp_path, {"luthier.yaml": text.replace("${HOST}", "${HOST:-127.0.0.1}")})
    userinfo = (
        "`issuer` holds a user name or a password "
        "(put it where it is not shown: `auth: {type: bearer, token: …}`, or a header)"
    )
    assert folder.told() == [f"luthier.yaml:3:84: {userinfo}"]
    Folder(tmp_path, {"luthier.yaml": text.replace("\n", "environment: production\n", 1)})
    inside = "is private or this machine's own, which is not allowed in production"
    hint = "(if it is meant, set `allow_private: true` for this server)"
    assert [line for line in folder.told() if "HOST" not in line] == [
        f"luthier.yaml:3:12: `url` {inside} {hint}",
        f"luthier.yaml:3:84: {userinfo}",
        f"luthier.yaml:4:12: `url` {inside} {hint}",
        f"luthier.yaml:4:80: `issuer` {inside} {hint}",
    ]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://x/#part", "the url holds a fragment"),
        ("https://me:pw@x/", "the url holds a user name or a password"),
        ("https://x\\\\@y/", "or a backslash"),
        ("https://１27.0.0.1/", "the url holds characters that are not ASCII"),
        ("ftp://x/", "the url does not begin with https:// or http:// and name a host"),
    ],
)
def test_a_url_that_is_none_is_a_fault_of_the_file(url: str, said: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": f'mcpServers: {{a: {{url: "{url}"}}}}\n'})
    (told,) = folder.told()
    assert told.startswith("luthier.yaml:1:23: ")
    assert said in told


def test_commands_that_are_not_allowed_are_warned_of(tmp_path: Path) -> None:
    text = "mcpServers: {a: {command: deno}, b: {command: '${env.RUN}'}}\nallowed_commands: [node]\n"
    told = "`deno` is not in `allowed_commands`: the server `a` will not start (allowed here: node)"
    assert Folder(tmp_path, {"luthier.yaml": text}).told(environ={"RUN": "x"}) == [
        f"warning luthier.yaml:1:27: {told}"
    ]


# An entry, the text in it that the warning points at, and how the warning begins.
NEVER = [
    ("command: python, args: [-c, 'import os']", "-c", "the argument `-c` of `python` is refused: it is"),
    ("command: python, args: [-u, -m, timeit, '${A}']", "timeit", "the argument `timeit` of `python` is"),
    (
        "command: npx, args: [-y, 'https://x']",
        "'https",
        "the argument `https://x` of `npx` is refused: it is",
    ),
    ("command: python", "python", "the command `python` names no script"),
    ("command: python, args: []", "python", "the command `python` names no script"),
    ("command: python, args: [-u]", "[-u]", "the command `python` names no script"),
    ("command: python, args: [gone.py]", "gone", "the script `gone.py` is not there"),
    ("command: python, args: [there]", "there", "the script `there` is not a file"),
    ("command: python, args: [gone.py, '${A}']", "gone", "the script `gone.py` is not there"),
    ("command: node, args: ['$${x}.js']", "'$", "the script `${x}.js` is not there"),
    (f"command: python, args: [{'x' * 300}]", "xxx", f"the script `{'x' * 59}…` is not there"),
    ("command: uvx, args: [x], cwd: gone", "gone", "the working directory `gone` is not there"),
    (f"command: uvx, args: [x], cwd: {'y' * 300}", "yyy", "the working directory"),
    ("command: python, args: [server.py], cwd: gone", "gone", "the working directory `gone` is not there"),
    ("command: uvx, args: [x], cwd: server.py", "server", "the working directory `server.py` is not there"),
    ("command: uvx, args: [x], cwd: '~nobody-of-that-name'", "'~", "the working directory `~nobody"),
    ("command: python, args: [server.py], cwd: there", "server", "the script `server.py` is not there"),
    ("command: uvx, args: [x], env: {LD_PRELOAD: y}", "y}", "`LD_PRELOAD` decides what code is run"),
    ('command: uvx, args: [x], env: {A: "a\\0"}', '"a', "the value of `A` holds a NUL"),
    ("command: uvx, args: [x], inherit_env: [HOME, PYTHONPATH]", "PYTHON", "`PYTHONPATH` decides what code"),
]


@pytest.mark.parametrize("command", ["/usr/bin/tool", "..", "bin/tool"])
def test_a_path_among_the_allowed_commands_opens_nothing(command: str, tmp_path: Path) -> None:
    text = f"mcpServers: {{a: {{command: {command}}}}}\nallowed_commands: [{command}]\n"
    told = f"warning luthier.yaml:1:27: `{command}` is not the bare name of a command"
    assert Folder(tmp_path, {"luthier.yaml": text}).told() == [
        f"{told}: the server `a` will not start (allowed here: {command})"
    ]


@pytest.mark.parametrize(("entry", "at", "why"), NEVER, ids=[entry[:60] for entry, _, _ in NEVER])
def test_servers_that_can_never_start_are_warned_of(entry: str, at: str, why: str, tmp_path: Path) -> None:
    line = f" a: {{{entry}}}"
    files = {"luthier.yaml": f"mcpServers:\n{line}\n", "server.py": "", "there/more.py": ""}
    [told] = Folder(tmp_path, files).told(environ={"A": "x"})
    assert told.startswith(f"warning luthier.yaml:2:{line.index(at) + 1}: {why}")
    assert told.endswith(": the server `a` will not start")


@pytest.mark.parametrize(
    "entry",
    [
        "command: python, args: [server.py, -c, x]",
        "command: python, args: [more.py], cwd: there",
        "command: python, args: ['${A}', -c, x]",  # it may be a script
        "command: python, args: [-m, '${A}']",
        "command: python, args: [-X, '${A}']",
        "command: python, args: ['${A}.py']",
        "command: python, args: [gone.py], cwd: '${A}'",
        "command: '${A}', args: [-c, x]",
        "command: uvx, args: [x], env: {A: '${A}'}, sandbox: auto",
        "command: uvx, args: [x], cwd: '~'",
        "command: python, args: [-c, x], cwd: gone, env: {LD_PRELOAD: x}, disabled: true",
        "url: https://x",
    ],
)
def test_servers_that_may_start_are_not_warned_of(entry: str, tmp_path: Path) -> None:
    files = {"luthier.yaml": f"mcpServers:\n a: {{{entry}}}\n", "server.py": "", "there/more.py": ""}
    assert Folder(tmp_path, files).told(environ={"A": "x"}) == []


def test_no_process_starts_by_a_command_in_production(tmp_path: Path) -> None:
    text = "environment: production\nmcpServers: {a: {command: uvx, args: [x]}, b: {url: https://x}}"
    [told] = Folder(tmp_path, {"luthier.yaml": text}).told()
    assert told.startswith("warning luthier.yaml:2:27: in production a server is started by a launch profile")


@pytest.mark.parametrize(
    ("profiles", "there"),
    [("{}", "none"), ("{git: {executable: /opt/git}, hg: {executable: /opt/hg}}", "git, hg")],
)
def test_whoever_names_no_launch_profile_is_told_which_there_are(
    profiles: str, there: str, tmp_path: Path
) -> None:
    text = f"mcpServers: {{a: {{launch: svn}}}}\nlaunch_profiles: {profiles}"
    [told] = Folder(tmp_path, {"luthier.yaml": text}).told()
    assert told.endswith(f"(there are: {there})")


PROFILED = """\
environment: production
launch_profiles:
  git:
    executable: /usr/bin/python3
    args: [-I, -m, mcp_server_git, --repository, "{repository}"]
    holes: {repository: {enum: [/srv/a, /srv/b]}}
    env: [TOKEN]
    sandbox: {mode: %s}
mcpServers:
  a: {%s}
"""


@pytest.mark.parametrize(
    ("entry", "mode", "at", "why"),
    [
        ("launch: svn", "required", "svn", "there is no launch profile `svn`"),
        ("launch: git", "required", "git", "the value of `repository` is missing"),
        (
            "launch: {profile: git, values: {repository: /etc}}",
            "required",
            "/etc}",
            "the value of `repository` is none of /srv/a, /srv/b",
        ),
        (
            "launch: {profile: git, values: {repository: /srv/a, x: y}}",
            "required",
            "y}",
            "the value of `x` is not a hole of its profile",
        ),
        (
            "launch: {profile: git, values: {repository: /srv/a}}, env: {A: b}",
            "required",
            "b}",
            "`A` is not among the variables",
        ),
        (
            "launch: {profile: git, values: {repository: /srv/a}}, inherit_env: [HOME]",
            "required",
            "HOME",
            "`HOME` is not among the variables",
        ),
        (
            "launch: {profile: git, values: {repository: /srv/a}}",
            "auto",
            "{profile",
            "in production the sandbox is required, not `auto`",
        ),
    ],
)
def test_what_a_launch_profile_does_not_allow_is_warned_of_and_not_saved(
    entry: str, mode: str, at: str, why: str, tmp_path: Path
) -> None:
    text = PROFILED % (mode, entry)
    folder = Folder(tmp_path, {"luthier.yaml": text})
    [told] = folder.told()
    column = text.splitlines()[9].index(at) + 1
    assert told.startswith(f"warning luthier.yaml:10:{column}: {why}")
    project = load_project(tmp_path / "luthier.yaml")
    [fault] = launch_faults(project.servers["a"], project)
    assert (fault.message.startswith(why), fault.warning) == (True, False)
    assert (fault.line, fault.column) == (10, column)
    assert told.endswith(f"({fault.suggestion})") == bool(fault.suggestion) == ("svn" in entry)


def test_what_a_launch_profile_allows_is_saved(tmp_path: Path) -> None:
    entry = "launch: {profile: git, values: {repository: /srv/a}}, env: {TOKEN: '${TOKEN}'}"
    folder = Folder(tmp_path, {"luthier.yaml": PROFILED % ("required", entry)})
    assert folder.told(environ={"TOKEN": "x"}) == []
    project = load_project(tmp_path / "luthier.yaml")
    assert launch_faults(project.servers["a"], project) == ()
    assert launch_faults(ServerEntry(id="b", transport="http", url="https://x"), project) == ()


def test_files_are_known_by_what_they_hold(tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        {
            "other.yaml": "servers: {git: {}}\nagents: {}",
            "steps.yaml": "steps: []\nservers: 1",
            "agents.yaml": "agents: []\nservers: 1",
            "broken.yaml": "a: [",
        },
    )
    assert folder.told("other.yaml") == [
        "other.yaml:1:16: a server needs a `command` or a `url`",
        "warning other.yaml:2:1: this version does not use `agents` yet",
    ]
    assert folder.told("agents.yaml")[0] == "agents.yaml:1:9: an ensemble has at least one step"
    assert folder.told("steps.yaml")[0] == "steps.yaml:1:8: an ensemble has at least one step"
    assert folder.told("broken.yaml")[0].startswith("broken.yaml:1:")


def test_a_folder_of_ensembles_needs_no_project(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"a.yaml": "agents: []", "ensembles/b.yaml": "agents: []"})
    assert folder.told() == [
        "a.yaml:1:9: an ensemble has at least one step",
        "ensembles/b.yaml:1:9: an ensemble has at least one step",
    ]


def test_nothing_to_check_is_a_fault(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {})
    assert folder.told() == [
        ".: there is no luthier.yaml here or above, and no ensemble (`luthier init` makes a project)"
    ]
    assert folder.told("none.yaml") == ["none.yaml: there is no such file or folder"]


def test_a_folder_inside_a_project_without_ensembles_means_the_project(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"luthier.yaml": "x: 1", "ensembles/a.yaml": "agents: []", "src/x.py": ""})
    assert folder.told("src") == folder.told()
    assert len(folder.told("src")) == 2


def test_without_paths_the_working_directory_is_checked(tmp_path: Path) -> None:
    import subprocess
    import sys

    Folder(tmp_path, {"luthier.yaml": "x: 1"})
    code = "from luthier.spec import check_paths; print(*check_paths())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.startswith("luthier.yaml:1:1: unknown key `x`")


def test_checking_starts_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    touch = f"open({str(mark)!r}, 'w')"
    folder = Folder(
        tmp_path,
        {
            "luthier.yaml": "mcpServers: {a: {command: python, args: [server.py], required: true}}",
            "server.py": touch,
            "ensembles/a.yaml": CODE,
            "scripts/do-it.py": f"{touch}\ndef run(c): ...",
        },
    )
    assert folder.told() == []
    assert not mark.exists()
