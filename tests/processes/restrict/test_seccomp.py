"""
The filter of system calls, run by an interpreter of its instructions: for machines that these tests do not run on, too.
"""

import errno
import struct
import sys

import pytest

from guardrails.processes.restrict.seccomp import Rule, program, rules
from guardrails.processes.restrict.syscalls import AARCH64, ABSENT, REFUSED, RISCV64, SHARED_MEMORY, X86_64, number_of


ALLOWED = "allowed"
KILLED = "killed"
MACHINES = (X86_64, AARCH64, RISCV64)
REFUSES = rules(families=(1, 2, 10, 16), pairs_only=False, shared=False)
CLOSED = rules(families=(), pairs_only=True, shared=True)


def answer(
    refused: tuple[Rule, ...], machine: int, number: int, *arguments: int, runs_on: int | None = None
) -> str | int:
    """
    What the filter of *refused* for *machine* says of a call: allowed, killed, or an errno.
    """
    code = program(refused, machine)
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, machine if runs_on is None else runs_on, 0, *padded)
    loaded, at = 0, 0
    for _ in range(len(code)):
        kind, if_true, if_false, value = struct.unpack_from("=HBBI", code, at * 8)
        at += 1
        if kind == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif kind == 0x54:
            loaded &= value
        elif kind == 0x15:
            at += if_true if loaded == value else if_false
        elif kind == 0x35:
            at += if_true if loaded >= value else if_false
        else:
            assert kind == 0x06
            return ALLOWED if value == 0x7FFF0000 else KILLED if value == 0x80000000 else value & 0xFFFF
    raise AssertionError("it does not end")


def of(name: str, machine: int) -> int:
    number = number_of(name, machine)
    assert number is not None
    return number


@pytest.mark.skipif(sys.byteorder != "little", reason="all machines of the table are little-endian")
@pytest.mark.parametrize("machine", MACHINES)
def test_each_refused_call_is_refused_on_each_machine(machine: int) -> None:
    for name in (*REFUSED, *ABSENT):
        number = number_of(name, machine)
        if number is not None:
            expected = errno.ENOSYS if name in ABSENT else errno.EPERM
            assert answer(REFUSES, machine, number) == expected, name
    for name in SHARED_MEMORY:
        assert answer(REFUSES, machine, of(name, machine)) == ALLOWED
        assert answer(CLOSED, machine, of(name, machine)) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_are_not_named_are_allowed(machine: int) -> None:
    named = {number_of(rule.name, machine) for rule in CLOSED}
    for number in set(range(460)) - named:
        assert answer(CLOSED, machine, number) == ALLOWED


def test_a_call_by_the_numbers_of_another_machine_is_the_last_one() -> None:
    for machine, other in ((X86_64, 0x40000003), (AARCH64, 0x40000028), (X86_64, AARCH64)):
        assert answer(REFUSES, machine, 0, runs_on=other) == KILLED


@pytest.mark.parametrize("number", [0x40000000, 0x40000000 | 101, 0x40000000 | 520, -1])
def test_the_numbers_of_x32_are_no_calls(number: int) -> None:
    assert answer(REFUSES, X86_64, number) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_made_of_the_named_families_only(machine: int) -> None:
    socket = of("socket", machine)
    for family in range(50):
        allowed = family in (1, 2, 10, 16)
        assert (answer(REFUSES, machine, socket, family) == ALLOWED) is allowed
        assert answer(CLOSED, machine, socket, family) == errno.EACCES
        # Only the low half counts, as for the kernel.
        assert (answer(REFUSES, machine, socket, 1 << 32 | family) == ALLOWED) is allowed
    assert answer(REFUSES, machine, socket, 16, 3, 0) == ALLOWED
    assert answer(REFUSES, machine, socket, 16, 3, 9) == errno.EACCES
    assert answer(REFUSES, machine, socket, 2, 1, 9) == ALLOWED


@pytest.mark.parametrize(("kind", "allowed"), [(1, True), (5, True), (1 | 0o2000000, True), (2, False), (3, False)])
def test_a_pair_of_sockets_cannot_be_addressed(kind: int, allowed: bool) -> None:
    pair = of("socketpair", X86_64)
    assert (answer(CLOSED, X86_64, pair, 1, kind) == ALLOWED) is allowed
    assert answer(REFUSES, X86_64, pair, 1, kind) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_gets_no_namespace_of_its_own(machine: int) -> None:
    clone = of("clone", machine)
    assert answer(REFUSES, machine, clone, 0x01200011) == ALLOWED
    for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(REFUSES, machine, clone, 0x01200011 | flag) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_no_program_runs_as_its_owner(machine: int) -> None:
    for name, index in (("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("mknodat", 2), ("chmod", 1), ("creat", 1)):
        number = number_of(name, machine)
        if number is not None:
            given = [0] * index
            assert answer(REFUSES, machine, number, *given, 0o4755) == errno.EPERM
            assert answer(REFUSES, machine, number, *given, 0o2755) == ALLOWED
    openat = of("openat", machine)
    assert answer(REFUSES, machine, openat, 0, 0, 0o101, 0o4755) == errno.EPERM
    assert answer(REFUSES, machine, openat, 0, 0, 0o20200002, 0o4755) == errno.EPERM
    assert answer(REFUSES, machine, openat, 0, 0, 0o1, 0o4755) == ALLOWED  # nothing is made, and no mode is read
    assert answer(REFUSES, machine, openat, 0, 0, 0o101, 0o644) == ALLOWED


def test_nothing_is_typed_into_a_terminal_by_any_spelling() -> None:
    ioctl = of("ioctl", X86_64)
    for command in (0x5412, 0x541C, 1 << 32 | 0x5412, 0xFFFFFFFF00005412):
        assert answer(REFUSES, X86_64, ioctl, 0, command) == errno.EPERM
    assert answer(REFUSES, X86_64, ioctl, 0, 0x5401) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("most", "refused_from"), [(4 << 30, 1 << 32), (3 << 30, 1 << 32), (1 << 20, 1 << 20), (1, 1)])
def test_shared_memory_is_refused_by_the_piece(machine: int, most: int, refused_from: int) -> None:
    limited = rules(families=None, pairs_only=False, shared=False, memory_bytes=most)
    mmap, private, shared, of_file = of("mmap", machine), 0x22, 0x21, 0x01
    for size in (1, 1 << 20, (1 << 32) - 1, 1 << 32, 10 << 30, 1 << 40):
        expected = errno.ENOMEM if size >= refused_from else ALLOWED
        assert answer(limited, machine, mmap, 0, size, 3, shared) == expected
        assert answer(limited, machine, of("shmget", machine), 0, size) == expected
        for kind in (private, of_file, 0x4022):
            assert answer(limited, machine, mmap, 0, size, 3, kind) == ALLOWED


def test_limits_of_other_processes_stay() -> None:
    limits = of("prlimit64", X86_64)
    assert answer(CLOSED, X86_64, limits, 0) == ALLOWED
    assert answer(CLOSED, X86_64, limits, 77) == errno.EPERM
    assert answer(REFUSES, X86_64, limits, 77) == ALLOWED


def test_of_processes_that_share_its_numbers_a_program_slows_itself_only() -> None:
    for name, process in (("setpriority", 0), ("ioprio_set", 1)):
        number = of(name, X86_64)
        assert answer(CLOSED, X86_64, number, process, 0) == ALLOWED
        for other in ((process, 77), (process + 1, 0), (process + 2, 0)):
            assert answer(CLOSED, X86_64, number, *other) == errno.EPERM
            assert answer(REFUSES, X86_64, number, *other) == ALLOWED
