"""What an ensemble delivers: values by name, or blocks of which the first that applies makes the response.

One mapping alone is a block if all its keys are a block's and one of them can be nothing else: a condition, a
redirect, a format, headers, or a status that is written as a number. `{status: ${a.output}, body: ok}` are
two values. In a list, every entry is a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from luthier.expr import Compiled
from luthier.spec.expressions import placed, placed_condition
from luthier.spec.reader import Found, Reader

if TYPE_CHECKING:
    from luthier.spec.expressions import Placed
    from luthier.spec.reader import Sink

FORMATS = {
    "json": "application/json",
    "text": "text/plain",
    "html": "text/html",
    "xml": "application/xml",
    "csv": "text/csv",
    "markdown": "text/markdown",
    "yaml": "application/x-yaml",
    "ics": "text/calendar",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
}
"""The formats of a body, and what each is called on the web."""

REDIRECTS = (301, 302, 307, 308)
BLOCK_KEYS = {"when", "status", "headers", "body", "rawBody", "raw_body", "redirect", "format"}
SURE = {"when", "redirect", "format", "headers"}


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How a body is written. `extract`: the field of it that is."""

    type: str
    content_type: str
    extract: str = ""


class OutputBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One response. `raw`: the body is delivered as text. `redirect` is the address, `status` then 3xx.

    `template` is the page that a redirect carries for whoever does not follow it.
    """

    status: int
    when: Compiled | None = None
    headers: Compiled | None = None
    body: Compiled | None = None
    raw: bool = False
    redirect: Compiled | None = None
    template: Compiled | None = None
    format: Format | None = None

    @property
    def expressions(self) -> tuple[Compiled, ...]:
        found = (self.when, self.headers, self.body, self.redirect, self.template)
        return tuple(one for one in found if one is not None)


class Outputs:
    """What was read: the compiled mapping, or the blocks; and all expressions with their places."""

    def __init__(self, mapping: Placed | None = None) -> None:
        self.mapping = mapping
        self.blocks: list[OutputBlock] = []
        self.uses: list[Placed] = [] if mapping is None else [mapping]


def read_outputs(sink: Sink, found: Found | None) -> Outputs:
    """Read them in each of their three forms."""
    if found is None:
        return Outputs()
    if isinstance(found.value, list):
        entries = [Found((*found.path, index), block) for index, block in enumerate(found.value)]
        if not entries:
            sink.add("a list of outputs holds at least one block", found.path)
    elif _is_block(found.value):
        entries = [found]
    else:
        return Outputs(placed(sink, found))
    outputs = Outputs()
    for entry in entries:
        reader = Reader.of(sink, entry.path, entry.value, "a block of outputs")
        if reader is not None:
            outputs.blocks.append(_read_block(reader, outputs.uses))
    bare = [path for path, block in entries[:-1] if isinstance(block, dict) and "when" not in block]
    if bare:
        sink.add("no block after this one applies: it has no `when`", bare[0], warning=True)
    return outputs


def _is_block(value: Any) -> bool:
    if not isinstance(value, dict) or not value or not BLOCK_KEYS.issuperset(value):
        return False
    status = value.get("status")
    return bool(SURE.intersection(value)) or (isinstance(status, int) and not isinstance(status, bool))


def _read_block(reader: Reader, uses: list[Placed]) -> OutputBlock:
    when = _noted(placed_condition(reader.sink, reader.take("when")), uses)
    status = reader.whole("status", low=100, high=599)
    headers = _headers(reader, uses)
    body, raw = reader.raw("body"), reader.raw("raw_body")
    if body is not None and raw is not None:
        reader.sink.add("only one of `body` and `rawBody` can be", raw.path, key=True)
    redirect = reader.inner("redirect")
    form = _read_format(reader)
    reader.done()
    address = template = None
    if redirect is not None:
        there = redirect.take("url", required=True)
        address = _noted(placed(reader.sink, there), uses)
        chosen = redirect.whole("status")
        if chosen is not None and chosen not in REDIRECTS:
            words = ", ".join(map(str, REDIRECTS))
            reader.sink.add(f"`status` of a redirect must be one of {words}", redirect.places["status"])
        template = _noted(placed(reader.sink, redirect.take("template")), uses)
        redirect.done()
        status = chosen or 302
    return OutputBlock(
        when=when,
        status=status or 200,
        headers=headers,
        body=_noted(placed(reader.sink, body or raw), uses),
        raw=body is None and raw is not None,
        redirect=address,
        template=template,
        format=form,
    )


def _headers(reader: Reader, uses: list[Placed]) -> Compiled | None:
    found = reader.take("headers")
    if found is not None and not isinstance(found.value, dict):
        reader.sink.wrong("a mapping", *found)
        return None
    return _noted(placed(reader.sink, found), uses)


def _read_format(reader: Reader) -> Format | None:
    found = reader.take("format")
    if found is None:
        return None
    if not isinstance(found.value, dict):
        name = reader.choice(tuple(FORMATS), "format")
        return Format(type=name, content_type=FORMATS[name]) if name else None
    inner = Reader(reader.sink, found.path, found.value)
    inner.take("type", required=True)
    name = inner.choice(tuple(FORMATS), "type")
    extract, content_type = inner.text("extract"), inner.text("content_type")
    inner.done()
    if name is None:
        return None
    return Format(type=name, content_type=content_type or FORMATS[name], extract=extract or "")


def _noted(found: Placed | None, uses: list[Placed]) -> Compiled | None:
    if found is None:
        return None
    uses.append(found)
    return found.compiled
