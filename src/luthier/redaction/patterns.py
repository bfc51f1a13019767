"""What looks like a credential wherever it comes from: the tokens of well-known makers, keys, passwords.

These are guesses, made after the known values: they find what never was ours to know. Every repetition is
bounded or ends at a character of another class, so the time is linear in the text.
"""

from __future__ import annotations

import re

BLOT = "[redacted]"

_TOKENS = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{36,255}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{22,255}",
    r"glpat-[A-Za-z0-9_-]{20,255}",  # GitLab
    r"xox[a-z]-[A-Za-z0-9-]{10,255}",  # Slack
    r"xapp-[A-Za-z0-9-]{10,255}",
    r"sk-[A-Za-z0-9_-]{20,255}",  # providers of models
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}",  # Stripe
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"ya29\.[A-Za-z0-9_-]{20,1024}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,255}",
    r"hf_[A-Za-z0-9]{30,255}",
    r"eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{0,4096}",  # a JSON Web Token
)
_KEY_BLOCK = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
_WORDS = (
    r"pass(?:word|wd|phrase)|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|client[_-]?secret|signature"
)
_ALREADY = r"(?!\s|\[redacted\]|[$]\{)"  # blotted out before, or only a reference

_SHAPES = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_TOKENS)})|{_KEY_BLOCK}", re.DOTALL)
_SCHEMES = re.compile(rf"(?i)\b(?P<kept>bearer|basic)(?P<gap>\s+){_ALREADY}[A-Za-z0-9._~+/-]{{8,8192}}=*")
_HEADERS = re.compile(
    rf"(?i)(?P<kept>\b(?:proxy-)?authorization|\b(?:set-)?cookie|\bx-[a-z-]{{0,30}}(?:key|token|secret))"
    rf"""(?P<gap>["']?\s{{0,4}}[:=]\s{{0,4}}["']?){_ALREADY}(?:(?:bearer|basic)\s+{_ALREADY})?[^"'\r\n,]{{4,8192}}"""
)
_PAIRS = re.compile(
    rf"""(?i)(?P<kept>{_WORDS})(?P<gap>=["']?|["']\s{{0,4}}:\s{{0,4}}["']){_ALREADY}[^\s"'&,;]{{4,8192}}"""
)
_USERINFO = re.compile(rf"(?P<kept>://)(?P<gap>[^/\s:@\"']{{0,256}}:){_ALREADY}[^/\s@\"']{{1,1024}}(?=@)")


_HINTS = (
    (_HEADERS, ("auth", "cookie", "x-")),
    (_SCHEMES, ("bearer", "basic")),
    (_PAIRS, ("pass", "pwd", "secret", "token", "credential", "key", "signature")),
    (_USERINFO, ("://",)),
)
"""Patterns and what a text without any match lacks: looking for that is many times faster."""

_BEGINNINGS = (
    *(
        "AKIA",
        "ASIA",
        "ABIA",
        "ACCA",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "xapp-",
        "sk-",
        "k_live",
        "k_test",
        "AIza",
    ),
    *("ya29.", "npm_", "pypi-", "hf_", "eyJ", "-----BEGIN"),
)


def blot_guesses(text: str) -> str:
    """The text with whatever looks like a credential replaced."""
    if any(map(text.__contains__, _BEGINNINGS)):
        text = _SHAPES.sub(BLOT, text)
    lower = text.lower()
    for pattern, hints in _HINTS:
        if any(map(lower.__contains__, hints)):
            text = pattern.sub(rf"\g<kept>\g<gap>{BLOT}", text)
    return text


def looks_like_credential(text: str) -> bool:
    """Whether it holds a token of a well-known maker or a private key."""
    return _SHAPES.search(text) is not None
