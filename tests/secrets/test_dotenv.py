"""An .env file is read line by line; faulty lines are named but never shown, since they may be secrets."""

from __future__ import annotations

import pytest

from luthier.errors import SpecError
from luthier.secrets import parse_env

LINES = {
    "plain": ("A=b", "b"),
    "exported": ("export A=b", "b"),
    "blanks around": ("  A =  b c  ", "b c"),
    "empty": ("A=", ""),
    "an equals sign in the value": ("A=b=c==", "b=c=="),
    "a comment behind": ("A=b # c", "b"),
    "only a comment behind": ("A=#c", ""),
    "a hash inside": ("A=b#c", "b#c"),
    "single quotes are literal": (r"A='b # $x \n'", r"b # $x \n"),
    "double quotes read escapes": (r'A="b \"c\" \\ \n\t\r\q"', 'b "c" \\ \n\t\rq'),
    "a comment behind quotes": ("A='b' # c", "b"),
    "nothing is expanded": ("A=${HOME}$(ls)`ls`", "${HOME}$(ls)`ls`"),
    "the last wins": ("A=1\nA=2", "2"),
    "a byte order mark": ("\ufeffA=b", "b"),
    "other line ends": ("\r\n# c\r\nA=b\r\n", "b"),
    "a line separator is no line end": ("A=b\u2028c", "b\u2028c"),
}


@pytest.mark.parametrize(("text", "value"), LINES.values(), ids=LINES)
def test_values(text: str, value: str) -> None:
    assert parse_env(text, file=".env") == {"A": value}


def test_every_faulty_line_is_named_without_its_text() -> None:
    text = "A=1\nhunter2\nB='hunter2\n9=hunter2\nC=\"hunter2\\\"\nD='hunter2' x\n"
    with pytest.raises(SpecError) as caught:
        parse_env(text, file=".env")
    assert [(fault.place, fault.message) for fault in caught.value.faults] == [
        (".env:2:1", "this line is not NAME=value"),
        (".env:3:3", "the quotes around the value of B do not match"),
        (".env:4:1", "this line is not NAME=value"),
        (".env:5:3", "the quotes around the value of C do not match"),
        (".env:6:3", "the quotes around the value of D do not match"),
    ]
    assert "hunter2" not in str(caught.value)
