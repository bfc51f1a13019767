"""Five reference ensembles for drills, and what each gives when nothing goes wrong."""

from __future__ import annotations

from typing import Any

SEQUENCE = """
ensemble: sequence
state: {schema: {seen: number}}
agents:
  - {name: first, operation: tools, config: {mcp: s, tool: do}, input: {key: first}}
  - name: flaky
    operation: tools
    config: {mcp: s, tool: flaky}
    input: {key: flaky}
    retry: {maxAttempts: 3, initialDelay: 1, backoff: fixed, retryOn: [protocol]}
  - name: sum
    operation: transform
    config: {value: "${first.output.n + flaky.output.n}"}
    state: {set: {seen: "${sum.output}"}}
  - {name: last, operation: tools, config: {mcp: s, tool: do}, input: {key: last, n: "${sum.output}"}}
outputs: {sum: "${sum.output}", last: "${last.output.n}", seen: "${state.seen}"}
"""

PARALLEL = """
ensemble: parallel
agents:
  - {name: one, operation: tools, config: {mcp: s, tool: do}, input: {key: one}}
  - {name: two, operation: tools, config: {mcp: s, tool: look}, input: {key: two}}
  - {name: add, operation: tools, config: {mcp: s, tool: do}, input: {key: "add-${item}", n: "${item}"}}
  - {name: total, operation: transform, config: {value: "${results | length}"}}
flow:
  - parallel: {id: both, steps: [one, two]}
  - map-reduce: {id: all, items: [1, 2, 3], maxConcurrency: 2, map: add, reduce: total}
outputs: {both: "${one.output.n + two.output.n}", total: "${total.output}"}
"""

TRY = """
ensemble: careful
agents:
  - {name: risk, operation: tools, config: {mcp: s, tool: bad}, input: {key: risk}}
  - {name: mend, operation: tools, config: {mcp: s, tool: do}, input: {key: "mend-${error.step}"}}
  - {name: tidy, operation: tools, config: {mcp: s, tool: do}, input: {key: tidy}}
flow:
  - try: {steps: [risk], catch: [mend], finally: [tidy]}
outputs: {mended: "${mend.output.n}", tidy: "${tidy.output.n}"}
"""

NESTED = """
ensemble: nested
agents:
  - {name: inner, operation: ensemble, config: {ensemble: child}, input: {key: "${item}"}}
  - {name: after, operation: tools, config: {mcp: s, tool: do}, input: {key: after}}
flow:
  - foreach: {id: each, items: [a, b], step: inner, maxConcurrency: 2}
  - after
outputs: {each: "${each.output}", after: "${after.output.n}"}
"""

CHILD = """
ensemble: child
inputs: {key: {type: string, required: true}}
agents:
  - {name: one, operation: tools, config: {mcp: s, tool: do}, input: {key: "${input.key}-1"}}
  - name: two
    operation: tools
    config: {mcp: s, tool: do}
    input: {key: "${input.key}-2", n: "${one.output.n}"}
outputs: "${one.output.n + two.output.n}"
"""

WHILE = """
ensemble: counting
state: {schema: {count: number}, initial: {count: 0}}
agents:
  - name: step
    operation: tools
    config: {mcp: s, tool: do}
    input: {key: "step-${iteration}"}
    state: {set: {count: "${state.count + step.output.n}"}}
flow:
  - while: {condition: "${state.count < 3}", steps: [step]}
outputs: {count: "${state.count}"}
"""

REFERENCES: dict[str, tuple[str, Any]] = {
    "sequence with retry": (SEQUENCE, {"sum": 2, "last": 1, "seen": 2}),
    "parallel and map-reduce": (PARALLEL, {"both": 2, "total": 3}),
    "try, catch, finally": (TRY, {"mended": 1, "tidy": 1}),
    "nested with foreach": (NESTED, {"each": [2, 2], "after": 1}),
    "while with state": (WHILE, {"count": 3}),
}
"""Each with what it gives when nothing goes wrong."""
