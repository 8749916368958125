"""
What every sandbox takes from a program: handles, terminals, system calls, rights.
"""

import os
import pty
import subprocess

from guardrails.processes.restrict.seccomp import machine_here
from guardrails.processes.restrict.syscalls import ABSENT, REFUSED, number_of
from guardrails.processes.sandbox.folders import interpreter

from .conftest import PREFACE, Place


def test_handles_of_its_parent_are_not_its_own(place: Place) -> None:
    with (place.outside / "secret").open() as kept:
        started = place.backend.started(place.confinement(), ["ls", "/proc/self/fd"])
        done = subprocess.run(  # noqa: S603
            started.arguments,
            env=dict(started.environment),
            cwd=started.folder,
            pass_fds=[kept.fileno()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.split() == ["0", "1", "2", "3"], done  # 3 is that of the list itself


def test_nothing_is_typed_into_a_terminal(place: Place) -> None:
    code = """
libc = ctypes.CDLL(None, use_errno=True)
found = []
for command in (0x5412, 0x100005412, 0x541C):
    done = libc.ioctl(2, ctypes.c_ulong(command), ctypes.c_char_p(b"x"))
    found.append([done, errno.errorcode.get(ctypes.get_errno())])
say(found)
"""
    ours, theirs = pty.openpty()
    try:
        started = place.backend.started(place.confinement(), [interpreter(), "-I", "-S", "-c", PREFACE + code, "null"])
        done = subprocess.run(  # noqa: S603
            started.arguments,
            env=dict(started.environment),
            cwd=started.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            start_new_session=True,
            check=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.stdout == '[[-1, "EPERM"], [-1, "EPERM"], [-1, "EPERM"]]\n'


CALLS = """
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *given):
    libc.syscall.restype = ctypes.c_long
    done = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) for one in given])
    return None if done >= 0 else errno.errorcode.get(ctypes.get_errno())
out = {}
for name, number in told.items():
    out[name] = call(number, 0, 0, 0, 0, 0)
out["setuid"] = failed(os.chmod, "file", 0o4755) if not open("file", "w").close() else None
out["setuid made"] = failed(os.open, "other", os.O_CREAT | os.O_WRONLY, 0o4755)
out["group"] = failed(os.chmod, "file", 0o755)
status = open("/proc/self/status").read()
out["rights"] = [line.split()[1] for line in status.splitlines() if line.startswith(("CapEff", "CapPrm", "CapBnd", "NoNewPrivs"))]
say(out)
"""


def test_calls_that_no_program_needs_are_refused(place: Place) -> None:
    machine = machine_here()
    numbers = {name: number_of(name, machine) for name in (*REFUSED, *ABSENT)}
    said = place.said(CALLS, told={name: number for name, number in numbers.items() if number is not None})
    rights = said.pop("rights")
    assert rights[-1] == "1"
    assert {int(one, 16) for one in rights[:2]} == {0}
    assert said.pop("group") is None
    assert said.pop("setuid") == "EPERM"
    assert said.pop("setuid made") == "EPERM"
    assert {name: said[name] for name in ABSENT} == dict.fromkeys(ABSENT, "ENOSYS")
    assert {said[name] for name in REFUSED if name in said} == {"EPERM"}, said


def test_attributes_of_files_outside_and_the_priority_of_other_processes_stay(place: Place) -> None:
    secret = place.outside / "secret"
    code = """
out = [failed(os.setxattr, told["file"], "user.made", b"x"), failed(os.setpriority, os.PRIO_PROCESS, told["process"], 19)]
out += [failed(os.setpriority, os.PRIO_PROCESS, 0, 5), failed(os.setpriority, os.PRIO_USER, 0, 19)]
say(out)
"""
    said = place.said(code, told={"file": str(secret), "process": os.getpid()})
    assert None not in said[:2]
    assert said[2] is None
    assert os.listxattr(secret) == []
    assert os.getpriority(os.PRIO_PROCESS, 0) < 19
