"""The test snippets of the `tools` page have their twins here, line by line."""

from __future__ import annotations

from pathlib import Path

from luthier.testing import TestConductor, expect

PROJECT = Path(__file__).parents[1] / "cases" / "seeds_testing"


async def test_mock_mcp_tools_should_analyze_pull_request() -> None:
    conductor = await TestConductor.create(
        project_path=PROJECT,
        mocks={
            "tools": {
                "github:get_pull_request": {
                    "number": 123,
                    "title": "Add new feature",
                    "state": "open",
                    "user": {"login": "octocat"},
                }
            }
        },
    )

    result = await conductor.execute_ensemble(
        "github-pr-analyzer", {"owner": "anthropics", "repo": "anthropic-sdk-typescript", "pull_number": 123}
    )

    expect(result).to_be_successful()
    assert result.output["pr_data"]["number"] == 123


async def test_integration_testing_should_call_the_real_server() -> None:
    conductor = await TestConductor.create(project_path=str(PROJECT))

    result = await conductor.execute_ensemble(
        "github-pr-analyzer", {"owner": "anthropics", "repo": "anthropic-sdk-typescript", "pull_number": 1}
    )

    expect(result).to_be_successful()
    assert "number" in result.output["pr_data"]
