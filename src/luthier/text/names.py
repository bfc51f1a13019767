"""Names that are like others: the nearest to one that is not there, and those that only look like another.

Two names look alike if their skeletons are equal: what is left of a name once case, separators, other ways
of writing a letter and letters of other alphabets that look like Latin ones make no difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# `near` compares every pair of characters: more than this would stall the loop.
_MOST_CHARACTERS = 100
_MOST_CANDIDATES = 1_000

_SHORTEST = 5  # characters of a skeleton that a near miss is told of: shorter names are all near each other

# Cyrillic, Greek, Armenian and other letters, each above the Latin one that it passes for.
_LIKE = str.maketrans(
    "авеѕіјкмнорстухԁһӏԛԝь" "АВЕЅІЈКМНОРСТУХ" "αβεικνορτυχγη" "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" "օոսհցզ" "ıɡɑ",  # noqa: RUF001  (that is what they are)
    "abesijkmhopctyxdhlqwb" "ABESIJKMHOPCTYX" "abeikvoptuxyn" "ABEZHIKMNOPTYX" "onuhgq" "iga",
)  # fmt: skip
_SAME = str.maketrans("01|i", "olll", "_-./ ")
_WORD = re.compile(r"[^\W_]+")


def near(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The candidates most like `name`, the best first; upper and lower case do not matter."""
    spellings: dict[str, list[str]] = {}
    for candidate in islice(candidates, _MOST_CANDIDATES):
        spellings.setdefault(candidate[:_MOST_CHARACTERS].casefold(), []).append(candidate)
    matches = get_close_matches(name[:_MOST_CHARACTERS].casefold(), spellings, limit)
    return tuple(spelling for match in matches for spelling in spellings[match])[:limit]


def latin(text: str) -> str:
    """The text with every letter that passes for a Latin one replaced by it."""
    return unicodedata.normalize("NFKC", text).translate(_LIKE)


def disguised(text: str, *, whole: bool = False) -> str:
    """The first word that passes for a Latin one and is not, or nothing.

    It mixes Latin letters with others that look like them; `whole`: or has none but such, in any style.
    """
    if text.isascii():
        return ""
    for match in _WORD.finditer(text):
        word = match.group()
        plain = latin(word) if whole else word.translate(_LIKE)
        if word.isascii() or not plain.isascii():
            continue
        if whole or any("a" <= letter <= "z" or "A" <= letter <= "Z" for letter in word):
            return word
    return ""


def skeleton(name: str) -> str:
    """What two names that look alike have in common."""
    return latin(latin(name).casefold()).translate(_SAME)


def lookalikes(names: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Pairs of tools whose names could be taken for each other: both keys, and how they are alike.

    `names` holds server and name by key. `looks`: another spelling of the same; `near`: a near miss of the
    name of another server's tool. Names that are equal are told apart by their server, and not meant.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for key, (_, name) in names.items():
        groups[skeleton(name)].append(key)
    for group in groups.values():
        for one, other in _pairs(group):
            if names[one][1] != names[other][1]:
                yield one, other, "looks"
    yield from _near_misses(names, groups)


def _near_misses(
    names: Mapping[str, tuple[str, str]], groups: Mapping[str, list[str]]
) -> Iterator[tuple[str, str, str]]:
    """Skeletons that are equal once each has lost a letter at most: they are two edits apart at most."""
    shorter: dict[str, set[str]] = defaultdict(set)
    for bone in groups:
        if len(bone) >= _SHORTEST:
            for spelled in {bone, *(bone[:at] + bone[at + 1 :] for at in range(len(bone)))}:
                shorter[spelled].add(bone)
    told = {pair for bones in shorter.values() for pair in _pairs(sorted(bones))}
    for bone, other_bone in sorted(told):
        for one in groups[bone]:
            for other in groups[other_bone]:
                if names[one][0] != names[other][0]:
                    yield one, other, "near"


def _pairs(items: list[str]) -> Iterator[tuple[str, str]]:
    return ((one, other) for at, one in enumerate(items) for other in items[at + 1 :])
