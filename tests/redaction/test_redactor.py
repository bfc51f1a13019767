"""Known secrets are blotted out in every spelling; what looks like a credential is; plain text is not."""

from __future__ import annotations

import base64
import json
import re
import timeit
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from luthier.redaction import Redactor, redact_value
from luthier.redaction.patterns import BLOT, looks_like_credential
from luthier.redaction.redactor import MOST, SHORT, WORDS_OF_A_SWITCH
from luthier.redaction.spellings import squeezed
from luthier.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = 'Kx9-canary/Zq 7"w+é'


def knowing(*texts: str) -> Redactor:
    redactor = Redactor()
    for text in texts:
        redactor.add(text)
    return redactor


def base64_core(before: bytes, text: str, after: bytes) -> str:
    """What of it the text alone decides."""
    encoded = base64.b64encode(before + text.encode() + after).decode()
    return encoded[-(-len(before) * 8 // 6) : (len(before) + len(text.encode())) * 8 // 6]


ENCODED: dict[str, Callable[[str], str]] = {
    "raw": str,
    "url-quoted": lambda text: quote(text, safe=""),
    "url-quoted, slashes kept": quote,
    "url-quoted in lower case": lambda text: re.sub("%..", lambda m: m[0].lower(), quote(text, safe="")),
    "url-quoted with +": quote_plus,
    "as a component of JavaScript": lambda text: quote(text, safe="!'()*~"),
    "base64": lambda text: base64_core(b"", text, b""),
    "base64 behind one byte": lambda text: base64_core(b"u", text, b"x"),
    "base64 behind two bytes": lambda text: base64_core(b"u:", text, b"xy"),
    "base64 behind a name": lambda text: base64_core(b"someone:", text, b"\n"),
    "base64, url-safe": lambda text: base64_core(b"", text, b"").translate(str.maketrans("+/", "-_")),
    "hex": lambda text: text.encode().hex(),
    "hex in capitals": lambda text: text.encode().hex().upper(),
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, not only ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "Python": lambda text: repr(text)[1:-1],
    "split by a line break": lambda text: f"{text[:5]}\n{text[5:]}",
    "split and indented": lambda text: f"{text[:3]}\r\n\t  {text[3:6]}\n  {text[6:]}",
    "split by an escaped line break": lambda text: f"{text[:5]}\\n{text[5:]}",
    "letters apart": " ".join,
}


@pytest.mark.parametrize("encode", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize("text", [SECRET, "sk0123456789abcdef", "eight888"])
def test_every_spelling_is_blotted_out(encode: Callable[[str], str], text: str) -> None:
    shown = encode(text)
    assert knowing(text).redact(f"before {shown} after") == f"before {BLOT} after"


@pytest.mark.parametrize("encode", ENCODED.values(), ids=ENCODED)
@settings(deadline=None, max_examples=30)
@given(text=st.text(min_size=8), around=st.tuples(st.text(), st.text()))
def test_no_spelling_of_any_text_survives(
    encode: Callable[[str], str], text: str, around: tuple[str, str]
) -> None:
    assume(len(squeezed(text, escapes=True)) >= SHORT)
    assume(text.strip().lower() not in WORDS_OF_A_SWITCH)
    assume(not any(0xD800 <= ord(character) <= 0xDFFF for character in text))
    shown = encode(text.strip())
    redacted = knowing(text).redact(f"{around[0]}{shown}{around[1]}")
    assert shown not in redacted.replace(BLOT, "\0")


def test_a_text_with_several_secrets_keeps_all_that_lies_between() -> None:
    redactor = knowing("first-secret", "second-secret", "secret-first-secret")
    text = "a first-secret b second-secret c secret-first-secret d first-secretsecond-secret e"
    assert redactor.redact(text) == f"a {BLOT} b {BLOT} c {BLOT} d {BLOT}{BLOT} e"


@pytest.mark.parametrize(
    ("known", "text", "shown"),
    [
        ("abc", "abc", "abc"),
        ("", "nothing", "nothing"),
        ("true", "it is true", "it is true"),
        ("pin1", "pin1 pin12 xpin1 (pin1)", f"{BLOT} pin12 xpin1 ({BLOT})"),
        ("hunter2", "hunter2, hunter22", f"{BLOT}, hunter22"),
        (" padded-secret\n", "padded-secret", BLOT),
        ("a b c d", "a b c d e", f"{BLOT} e"),
    ],
)
def test_short_values_are_found_only_where_they_stand_alone(known: str, text: str, shown: str) -> None:
    assert knowing(known).redact(text) == shown


CUT = {
    "at the end": ("see Kn4ry+abcdefgh", f"see {BLOT}"),
    "at the beginning": ("opqrstuvwxyz seen", f"{BLOT} seen"),
    "before a mark": ("it said: Kn4ry+abc… (cut)", f"it said: {BLOT}… (cut)"),
    "behind a mark": ("it said: …stuvwxyz, twice", f"it said: …{BLOT}, twice"),
    "both": ("stuvwxyz and Kn4ry+ab", f"{BLOT} and {BLOT}"),
    "in base64": (base64.b64encode(b"Kn4ry+abcdefghijkl").decode()[:16], BLOT),
    "too little to know": ("see Kn4ry+a", "see Kn4ry+a"),
    "not where it was cut": ("Kn4ry+abc, and more", "Kn4ry+abc, and more"),
}


@pytest.mark.parametrize(("text", "shown"), CUT.values(), ids=CUT)
def test_what_a_cut_left_of_a_secret_is_blotted_out(text: str, shown: str) -> None:
    assert knowing("Kn4ry+abcdefghijklmnopqrstuvwxyz").redact(text) == shown


def test_what_stands_behind_a_scheme_is_known_by_itself() -> None:
    redactor = knowing("Bearer hunter22", "my secret words")
    assert redactor.redact("hunter22 words") == f"{BLOT} words"


def test_only_so_many_are_known_and_the_oldest_is_forgotten() -> None:
    redactor = knowing(*(f"canary-{number:06}" for number in range(MOST + 1)))
    assert redactor.redact("canary-000000 canary-000001") == f"canary-000000 {BLOT}"
    redactor.forget()
    assert redactor.redact("canary-000001") == "canary-000001"


GUESSED = {
    "AKIAIOSFODNN7EXAMPLE": BLOT,
    f"ghp_{'a1' * 18} and": f"{BLOT} and",
    f"github_pat_{'a' * 30}": BLOT,
    "xoxb-123456789012-abcdef": BLOT,
    f"sk-ant-{'x' * 30}": BLOT,
    f"eyJ{'a' * 20}.{'b' * 20}.{'c' * 20}!": f"{BLOT}!",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY----- rest": f"{BLOT} rest",
    "-----BEGIN PRIVATE KEY-----\nMIIabc cut off": BLOT,
    "Authorization: Bearer abcdefgh": f"Authorization: {BLOT}",
    "it sent bearer abcdefgh.ijk==": f"it sent bearer {BLOT}",
    "Set-Cookie: a=b; c=d\nX-Other: e": f"Set-Cookie: {BLOT}\nX-Other: e",
    "X-Api-Key: abcdef": f"X-Api-Key: {BLOT}",
    "password=hunter2 x": f"password={BLOT} x",
    '{"client_secret": "abcdef", "n": 1}': f'{{"client_secret": "{BLOT}", "n": 1}}',
    "https://x.example/?a=1&access_token=abcdef&b=2": f"https://x.example/?a=1&access_token={BLOT}&b=2",
    "postgresql://me:pw@db/x": f"postgresql://me:{BLOT}@db/x",
}


@pytest.mark.parametrize(("text", "shown"), GUESSED.items(), ids=range(len(GUESSED)))
def test_what_looks_like_a_credential_is_blotted_out_once(text: str, shown: str) -> None:
    redactor = Redactor()
    assert redactor.redact(text) == shown
    assert redactor.redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "luthier.yaml:3:4 (mcpServers.git.auth.token): a secret stands in the file",
        "the token endpoint 'https://x.example/token' answered 401 (invalid_client).",
        'headers: {"Authorization": "${env.TOKEN}"}, token=${secret:git}',
        "see https://host/a@b and https://host:8080/x",
        "Write auth.token_url or auth.issuer.",
        "task-force sketch of the ghosts' monkey",
        "",
    ],
)
def test_plain_words_stay(text: str) -> None:
    assert Redactor().redact(text) == text


def test_what_a_kilobyte_costs(figure: Callable[[str], None]) -> None:
    line = "INFO luthier.connect the connection to git failed: HTTP 503, again in 1.5 s; the token is fresh\n"
    text = (line * 11)[:1024]
    for count in (0, 10, 1000):
        redactor = knowing(*(f"Kn4ry+{number:030}" for number in range(count)))
        redactor.redact(text)
        assert redactor.redact(text) == text
        spent = min(timeit.repeat(partial(redactor.redact, text), number=20, repeat=5)) / 20
        figure(f"redaction: {spent * 1e6:.0f} µs for a KiB that holds no secret, {count} secrets known")


def test_a_token_is_told_from_a_reference() -> None:
    assert looks_like_credential(f"--key=ghp_{'a1' * 18}")
    assert not looks_like_credential("--key=${env.GITHUB_TOKEN}")


def test_a_value_is_redacted_down_to_its_leaves() -> None:
    Secret("canary-in-a-leaf")
    value = {"a": ["x canary-in-a-leaf", 1, None, {"canary-in-a-leaf": True}], "b": ("canary-in-a-leaf",)}
    assert redact_value(value) == {"a": [f"x {BLOT}", 1, None, {BLOT: True}], "b": [BLOT]}
