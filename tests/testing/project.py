"""A project on disk whose ensembles call servers that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ANALYZER = """\
ensemble: github-pr-analyzer

agents:
  - name: get-pr
    operation: tools
    config:
      mcp: github
      tool: get_pull_request

inputs:
  owner: anthropics
  repo: anthropic-sdk-typescript
  pull_number: 123

outputs:
  pr_data: ${get-pr.output}
"""

FALLBACK = """\
ensemble: fallback
agents:
  - {name: first, operation: tools, config: {mcp: github, tool: search}, input: {q: "${input.q}"}}
  - name: second
    condition: ${first.failed}
    operation: tools
    config: {mcp: archive, tool: look}
    input: {q: "${input.q}"}
outputs:
  results: ${first.output || second.output}
"""


def write(folder: Path, config: str = "mcpServers: {}\n", **ensembles: str) -> Path:
    """A project with these ensembles and the two that stand here."""
    (folder / "ensembles").mkdir(exist_ok=True)
    (folder / "luthier.yaml").write_text(config)
    for name, text in {"analyzer": ANALYZER, "fallback": FALLBACK, **ensembles}.items():
        (folder / "ensembles" / f"{name}.yaml").write_text(text)
    return folder
