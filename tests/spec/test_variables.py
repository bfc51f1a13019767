"""What an entry may add to the environment of its server."""

from __future__ import annotations

import pytest

from luthier.spec.variables import name_fault, setting_fault, value_fault


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
        *("GITHUB_TOKEN", "API_KEY", "TZ", "HTTPS_PROXY", "SSL_CERT_FILE", "my.name", "X-Y"),
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
    assert name_fault(name) == setting_fault(name) == ""


@pytest.mark.parametrize("name", ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "UserProfile"])
def test_folders_of_settings_are_passed_on_and_never_set(name: str) -> None:
    assert name_fault(name) == ""
    assert "no entry may set it" in setting_fault(name)


def test_what_may_not_be_passed_on_may_not_be_set() -> None:
    assert setting_fault("LD_PRELOAD") == name_fault("LD_PRELOAD") != ""


def test_a_value_that_no_process_can_take_or_that_is_code_is_named() -> None:
    assert value_fault("plain ${text} () {") == ""
    assert value_fault("a\0b")
    assert value_fault("() { :; }; touch x")
