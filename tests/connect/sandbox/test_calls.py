"""The filter of system calls: what it answers to each call, as read here and as used in a real sandbox."""

from __future__ import annotations

import errno
import platform
import struct

import pytest

from luthier.connect.sandbox.calls import ABSENT, CLONE, DENIED, IOCTL, MACHINES, call_filter
from luthier.spec import Sandbox
from tests.connect.sandbox.cell import cell, inmate, needs_sandbox

ALLOW, KILL = "allow", "kill"


def answer(machine: str, number: int, *arguments: int, arch: int | None = None) -> str:
    """What the kernel would do with that call: allow, kill, or the name of an error."""
    arch = MACHINES[machine][0] if arch is None else arch
    asked = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    lines = list(struct.iter_unpack("=HBBI", call_filter(machine)))
    word, at = 0, 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        match code:
            case 0x20:
                (word,) = struct.unpack_from("=I", asked, value)
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[code]
                at += yes if holds else no
            case 0x06:
                done = {0x7FFF0000: ALLOW, 0x80000000: KILL}
                return done.get(value) or errno.errorcode[value & 0xFFFF]


@pytest.mark.parametrize("machine", MACHINES)
def test_each_call_of_the_list_is_answered_as_it_says_and_every_other_is_allowed(machine: str) -> None:
    column = MACHINES[machine][1]
    denied = {numbers[column] for numbers in DENIED.values()} - {None}
    absent = {numbers[column] for numbers in ABSENT.values()}
    assert not denied & absent
    for number in range(1000):
        wanted = "EPERM" if number in denied else "ENOSYS" if number in absent else ALLOW
        assert answer(machine, number) == wanted, number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "flag", [0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]
)
def test_a_clone_makes_threads_and_processes_and_no_namespaces(machine: str, flag: int) -> None:
    number, threads = CLONE[MACHINES[machine][1]], 0x3D0F00
    assert answer(machine, number, threads) == ALLOW
    assert answer(machine, number, threads | flag) == "EPERM"
    assert answer(machine, number, 17 | flag) == "EPERM"


@pytest.mark.parametrize("machine", MACHINES)
def test_nothing_is_typed_into_a_terminal(machine: str) -> None:
    number = IOCTL[MACHINES[machine][1]]
    assert [answer(machine, number, 0, word) for word in (0x5412, 0x541C)] == ["EPERM", "EPERM"]
    assert answer(machine, number, 0x5412, 0x5413) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_of_another_kind_of_machine_is_ended(machine: str) -> None:
    assert answer(machine, 1, arch=0x40000003) == KILL


def test_numbers_of_another_kind_that_the_same_machine_takes_are_denied() -> None:
    assert answer("x86_64", 0x40000000) == "EPERM"
    assert answer("x86_64", 0x40000000 + 521) == "EPERM"


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert call_filter("riscv64") == b""


_SEEN = """
import ctypes, errno, os
call = ctypes.CDLL(None, use_errno=True).syscall
def tried(*words):
    return "allowed" if call(*words) >= 0 else errno.errorcode[ctypes.get_errno()]
found = {name: tried(number, *words) for name, (number, *words) in TRIED.items()}
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(found, status["Seccomp"].strip(), status["NoNewPrivs"].strip())
"""

# Each of them works, or fails in another way, where only rights are lacking.
_TRIED = {
    "keyctl": (*DENIED["keyctl"], 0, -3, 0),  # the id of its own session's keyring
    "ptrace": (*DENIED["ptrace"], 0, 0, 0, 0),  # be looked into by its parent
    "unshare": (*DENIED["unshare"], 0x400),  # its files alone
    "kcmp": (*DENIED["kcmp"], 1, 1, 0, 0, 0),
    "adjtimex": (*DENIED["adjtimex"], 0),
    "io_uring_setup": (*ABSENT["io_uring_setup"], 1, 0),
    "clone3": (*ABSENT["clone3"], 0, 0),
}


@needs_sandbox
async def test_in_a_real_sandbox_the_calls_are_denied() -> None:
    column = MACHINES[platform.machine()][1]
    tried = {name: (words[column], *words[2:]) for name, words in _TRIED.items()}
    async with cell(inmate(sandbox=Sandbox(mode="required"))) as made:
        said = await made.try_(_SEEN.replace("TRIED", repr(tried)))
    wanted = {name: "EPERM" if name in DENIED else "ENOSYS" for name in tried}
    assert said == f"{wanted} 2 1"
