"""Pages of other origins: those that are listed may ask and read, and nothing else changes for anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.serve.test_http import asked, served

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "https://app.example.com"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
HOUSE = {"origins": [PAGE]}


@pytest.mark.parametrize("path", ["/mcp", "/api/v1/ensembles/greeting/run", "/callback/hitl_x"])
async def test_a_page_that_is_listed_may_ask_and_read(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, serve=HOUSE) as url:
        status, _, told = await asked(url + path, "OPTIONS", None, headers={"Origin": PAGE, **ASKS})
        assert (status, told["Access-Control-Allow-Origin"], told["Vary"]) == (204, PAGE, "Origin")
        assert "authorization" in told["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in told
        status, _, told = await asked(f"{url}/api/v1/runs", headers={"Origin": PAGE})
        assert (status, told["Access-Control-Allow-Origin"]) == (200, PAGE)
        status, _, told = await asked(f"{url}/api/v1/runs", token=None, headers={"Origin": PAGE})
        assert (status, told["Access-Control-Allow-Origin"]) == (401, PAGE)
        assert "www-authenticate" in told["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example.com", **ASKS},
        {"Origin": "null", **ASKS},
        {"Origin": PAGE, "Host": "evil.example.com", **ASKS},
    ],
)
async def test_no_other_page_may(tmp_path: Path, headers: dict[str, str]) -> None:
    async with served(tmp_path, serve=HOUSE) as url:
        for method in ("OPTIONS", "POST"):
            status, _, told = await asked(f"{url}/mcp/tools/greeting", method, headers=headers)
            assert status == 403
            assert not [name for name in told if name.lower().startswith("access-control")]


async def test_without_an_origin_nothing_is_said_of_it_and_a_question_that_is_none_needs_a_token(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, serve=HOUSE) as url:
        _, _, told = await asked(f"{url}/api/v1/runs")
        assert not [name for name in told if name.lower().startswith("access-control")]
        assert (await asked(f"{url}/mcp", "OPTIONS", None, headers=ASKS))[0] == 401
        assert (await asked(f"{url}/mcp", "OPTIONS", None, headers={"Origin": PAGE}))[0] == 401
