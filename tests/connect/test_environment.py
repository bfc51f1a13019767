"""What of our environment a server gets."""

from __future__ import annotations

from luthier.connect.environment import inherited

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
