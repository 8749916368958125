"""
The command line as on a machine without bubblewrap and Landlock: the one is not on the search path, of the other the kernel
says that it has none, by a filter of system calls.

    python without_landlock.py run "task" ...
"""

import ctypes
import os
import struct
import sys

from guardrails.__main__ import main


NO_NEW_PRIVS, SECCOMP = 38, 22
CREATE_RULESET = 444
STEPS = (
    (0x20, 0, 0, 0),
    (0x15, 0, 1, CREATE_RULESET),
    (0x06, 0, 0, 0x00050000 | 38),
    (0x06, 0, 0, 0x7FFF0000),
)


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


steps = b"".join(struct.pack("=HBBI", *step) for step in STEPS)
libc = ctypes.CDLL(None, use_errno=True)
for option, value, more in ((NO_NEW_PRIVS, 1, 0), (SECCOMP, 2, ctypes.byref(Program(len(STEPS), steps)))):
    if libc.prctl(option, ctypes.c_ulong(value), more, 0, 0) != 0:
        sys.exit(77)
os.environ["PATH"] = os.path.dirname(sys.executable)  # noqa: PTH120
sys.argv[0] = "guardrails"
main()
