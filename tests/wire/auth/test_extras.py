"""What is installed only for logins: its lack is said, and nothing else needs it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, sys
sys.modules["mcp"] = sys.modules["cryptography"] = None  # as if they were not installed
from luthier.clock import SystemClock
from luthier.secrets import Secret
from luthier.spec.project import Auth
from luthier.wire.auth import Means, MemoryTokens, log_in
from luthier.wire.auth.assertion import signed
from luthier.wire.http import HttpClient, TlsFiles

async def main():
    client = HttpClient({})
    means = Means("lute", "http://127.0.0.1:9/mcp", client, SystemClock(), True, TlsFiles(), None)
    try:
        await means.dance(account, None)(401, None, None)
    except Exception as error:
        print(type(error).__name__, error)
    await client.close()

from luthier.wire.auth.factory import account_of
account = account_of(Auth(type="oauth", interactive=True), server="lute", url="http://127.0.0.1:9/mcp")
asyncio.run(main())
try:
    signed(Secret("-----BEGIN"), "c", "a", now=0)
except ValueError as error:
    print(error)
"""


def test_what_is_missing_is_named_with_the_way_to_get_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=50, check=True
    )
    login, signing = done.stdout.splitlines()
    assert login.startswith("ConnectError")
    assert "the package mcp" in login
    assert "the package cryptography" in signing
    assert login.count('pip install "luthier[oauth]"') == signing.count('pip install "luthier[oauth]"') == 1
