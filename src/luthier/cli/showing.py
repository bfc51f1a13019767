"""How a server's entry is shown: as it is written, what it runs and sends in full, its secrets hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.redaction import redact

if TYPE_CHECKING:
    from luthier.spec import ServerEntry


def described(entry: ServerEntry) -> dict[str, Any]:
    """The fields of an entry that differ from their defaults, with literal credentials hidden."""
    from luthier.spec import ServerEntry as Entry

    facts = {"id": entry.id, "transport": entry.transport} | _said(entry, Entry(id=entry.id))
    for key in ("env", "headers", "auth"):
        if key in facts:
            shown = {name: value if name == "type" else hidden(value) for name, value in facts[key].items()}
            facts[key] = shown
    if "secret" in facts:
        facts["secret"] = hidden(facts["secret"])
    if "args" in facts:
        facts["args"] = args_of(entry)
    for key in ("url", "proxy"):
        if key in facts:
            facts[key] = redact(facts[key])
    return facts


def args_of(entry: ServerEntry) -> list[str]:
    """Its arguments, with those hidden that hold a secret."""
    from luthier.spec.credentials import written_credentials

    secret = {keys for keys, _, _ in written_credentials(entry)}
    return [hidden(text) if ("args", index) in secret else text for index, text in enumerate(entry.args)]


def _said(value: Any, default: Any) -> dict[str, Any]:
    """What a value says beyond its defaults, down through the values in it."""
    import msgspec

    said: dict[str, Any] = {}
    for name in value.__struct_fields__:
        own, usual = getattr(value, name), getattr(default, name)
        if own == usual or name == "origin":
            continue
        if name == "trust":
            said[name] = own.to_json()["integrity"]
        elif isinstance(own, msgspec.Struct):
            said[name] = _said(own, usual if usual is not None else type(own)())
        else:
            said[name] = own
    return said


def hidden(value: Any) -> Any:
    """A text by its references only: what is literal beside them is left out, or told by its length."""
    from luthier.secrets import find

    if not isinstance(value, str):
        return value
    shown, end = "", 0
    for reference in find(value):
        shown += "…" if reference.start > end else ""
        shown += reference.text
        end = reference.start + len(reference.text)
    return shown + ("…" if end < len(value) else "") if shown else f"(a literal of {len(value)} characters)"


def exposed(entry: ServerEntry) -> dict[str, Any]:
    """What approving the entry lets happen: what is run or reached, and who is given which reference."""
    from luthier.spec.hosts import command_line, digest, sent, suspects

    reach = {"runs": command_line(entry)} if entry.url is None else {"reaches": entry.url}
    facts: dict[str, Any] = {"id": entry.id, **reach}
    if entry.cwd is not None:
        facts["in"] = entry.cwd
    for key in ("env", "headers"):
        if values := getattr(entry, key):
            facts[key] = {name: hidden(value) for name, value in values.items()}
    if entry.tools.ask:
        facts["asks"] = list(entry.tools.ask)
    return facts | {
        "sends": [{"reference": one.reference, "key": one.key, "to": one.to} for one in sent(entry)],
        "suspects": [{"key": one.key, "hint": one.hint} for one in suspects(entry)],
        "hash": digest(entry),
    }


def show_exposed(entry: ServerEntry, said: str) -> None:
    """The same for people: one fact a line, each line whole."""
    from luthier.cli.render import echo
    from luthier.text import escape

    facts = exposed(entry)
    echo(f"{facts['id']} ({said})")
    rows: list[tuple[str, str]] = [(key, facts[key]) for key in ("runs", "reaches", "in") if key in facts]
    for key in ("env", "headers"):
        rows += [(key, f"{name}: {value}") for name, value in facts.get(key, {}).items()]
    rows += [("asks", f"before each call of {', '.join(facts['asks'])}")] if "asks" in facts else []
    rows += [("sends", f"{one['reference']} ({one['key']}) to {one['to']}") for one in facts["sends"]]
    rows += [("secret?", f"{one['key']} looks like one: {one['hint']}") for one in facts["suspects"]]
    for key, value in [*rows, ("hash", facts["hash"])]:
        echo(f"  {key:<8} {flat(escape(value))}")


def flat(text: str) -> str:
    """The text on one line, its breaks written out."""
    return text.replace("\n", "\\x0a").replace("\t", "\\x09")
