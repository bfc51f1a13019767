"""What of the environment a server gets, and what its entry may add."""

from __future__ import annotations

import pytest

from luthier.connect.environment import inherited, name_fault, value_fault

OURS = {
    "PATH": "/usr/bin",
    "HOME": "/home/ada",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TMPDIR": "/tmp",
    "SSL_CERT_FILE": "/etc/ca.pem",
    "SSL_CERT_DIR": "/etc/ca",
    "NODE_EXTRA_CA_CERTS": "/etc/ca.pem",
    "NO_PROXY": "localhost",
    "HTTPS_PROXY": "http://proxy.example:3128",
    "https_proxy": "proxy.example:3128",
    "HTTP_PROXY": "http://ada:pass@proxy.example:3128",
    "ALL_PROXY": "socks5://ada@[broken",
    "AWS_SECRET_ACCESS_KEY": "canary",
    "GITHUB_TOKEN": "canary",
    "NODE_OPTIONS": "--require=/tmp/x.js",
    "LD_PRELOAD": "/tmp/x.so",
    "BASH_FUNC_x%%": "() { :; }",
    "LC_EVIL": "() { :; }",
}


def test_a_server_gets_what_it_needs_to_run_and_nothing_else_of_ours() -> None:
    assert set(inherited(OURS, ())) == {
        *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
        *("NO_PROXY", "HTTPS_PROXY", "https_proxy"),
    }


def test_names_that_the_entry_asks_for_are_passed_on_with_their_secrets() -> None:
    got = inherited(OURS, ("GITHUB_TOKEN", "HTTP_PROXY", "NOT_SET"))
    assert got["GITHUB_TOKEN"] == "canary"
    assert got["HTTP_PROXY"] == "http://ada:pass@proxy.example:3128"
    assert "NOT_SET" not in got


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "Path", "IFS", "ENV", "BROWSER"),
        *(
            "LD_PRELOAD",
            "LD_AUDIT",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "GCONV_PATH",
            "GLIBC_TUNABLES",
        ),
        *(
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PYTHONHOME",
            "PYTHONUSERBASE",
            "PYTHONWARNINGS",
            "PYTHONBREAKPOINT",
        ),
        *("PYTHONINSPECT", "PYTHONEXECUTABLE", "pythonpath"),
        *("NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "node_options"),
        *("npm_config_registry", "NPM_CONFIG_SCRIPT_SHELL", "npm_config_node_options"),
        *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_PYTHON", "PIP_INDEX_URL"),
        *("BASH_ENV", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "ZDOTDIR"),
        *("GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "OPENSSL_CONF"),
        *("", "1X", "A=B", "A B", "A\0", "BASH_FUNC_x%%"),
    ],
)
def test_names_that_decide_what_code_is_run_may_not_be_set(name: str) -> None:
    assert name_fault(name)


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_TOKEN", "API_KEY", "HOME", "TZ", "HTTPS_PROXY", "SSL_CERT_FILE", "my.name", "X-Y"),
        *(
            "PYTHONUNBUFFERED",
            "PYTHONUTF8",
            "NODE_ENV",
            "NODE_EXTRA_CA_CERTS",
            "UV_OFFLINE",
            "GIT_AUTHOR_NAME",
        ),
        *("GITLAB_URL", "PATHS", "MY_PATH", "ENVIRONMENT", "PYTHIA", "NODE"),
    ],
)
def test_all_other_names_may_be_set(name: str) -> None:
    assert name_fault(name) == ""


def test_a_value_that_no_process_can_take_or_that_is_code_is_named() -> None:
    assert value_fault("plain ${text} () {") == ""
    assert value_fault("a\0b")
    assert value_fault("() { :; }; touch x")
