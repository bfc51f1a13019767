"""Which system calls a server in a sandbox may not make, as a filter for the kernel (seccomp, classic BPF).

A sandbox without rights could make hardly any of them anyway; what it cannot reach, it cannot find a fault in
either. The list is what nobody needs who serves tools: looking into other processes, mounting, namespaces,
keyrings, programs for the kernel, clocks, modules. They end with EPERM. Those that libraries use where they
can, and do without where there is no such call, end with ENOSYS. Programs of another kind of machine are
ended.
"""

from __future__ import annotations

import errno
import platform
import struct

# Of classic BPF: load a word, jump where equal, at least, or any bit is set, return.
_LOAD, _EQUAL, _LEAST, _ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # where the kernel lays down what it is asked about
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

_NAMESPACES = 0x7E020000  # the flags of clone that make one
_TYPE_IN = (0x5412, 0x541C)  # of ioctl: what types into a terminal (TIOCSTI, TIOCLINUX)

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""What the kernel calls each kind of machine, and where its numbers stand below."""

_BEYOND = {"x86_64": 0x40000000}  # from here on another kind's numbers begin (x32)

CLONE, IOCTL = (56, 220), (16, 29)

DENIED = {
    # Other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # File systems and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "nfsservctl": (180, 42),
    # Keyrings, and programs for the kernel
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    # The machine
    "adjtimex": (159, 171), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "syslog": (103, 116), "acct": (163, 89), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "sethostname": (170, 161), "setdomainname": (171, 162),
    "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None),
}  # fmt: skip
"""Calls that end with EPERM, and their numbers."""

ABSENT = {
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "clone3": (435, 435),
}  # fmt: skip
"""Calls that end with ENOSYS. The flags of clone3 lie where no filter can look: clone answers for it."""


def call_filter(machine: str = platform.machine()) -> bytes:
    """The filter for this kind of machine; empty where we have none."""
    if machine not in MACHINES:
        return b""
    arch, column = MACHINES[machine]
    denied, absent = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    lines = [_line(_LOAD, _ARCH), _line(_EQUAL, arch, yes=1), _line(_RETURN, _KILL), _line(_LOAD, _NUMBER)]
    if machine in _BEYOND:
        lines += [_line(_LEAST, _BEYOND[machine], no=1), _line(_RETURN, denied)]
    for answer, calls in ((denied, DENIED), (absent, ABSENT)):
        for numbers in calls.values():
            number = numbers[column]
            if number is not None:
                lines += [_line(_EQUAL, number, no=1), _line(_RETURN, answer)]
    lines += _where(CLONE[column], _FIRST, [(_ANY, _NAMESPACES)], denied)
    lines += _where(IOCTL[column], _SECOND, [(_EQUAL, word) for word in _TYPE_IN], denied)
    return b"".join((*lines, _line(_RETURN, _ALLOW)))


def _where(number: int, argument: int, tests: list[tuple[int, int]], answer: int) -> list[bytes]:
    """An answer where the low half of an argument of that call passes one of the tests."""
    tried = [line for code, value in tests for line in (_line(code, value, no=1), _line(_RETURN, answer))]
    lines = [_line(_LOAD, argument), *tried, _line(_RETURN, _ALLOW)]
    return [_line(_EQUAL, number, no=len(lines)), *lines]


def _line(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
