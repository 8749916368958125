"""
System calls that no program of an agent needs, with their numbers: on x86-64, and on the machines that share one table.
"""

from typing import Final


X86_64: Final = 0xC000003E
AARCH64: Final = 0xC00000B7
RISCV64: Final = 0xC00000F3
"""How the kernel names a machine to a filter."""
MACHINES: Final = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64, "riscv64": RISCV64}
_NUMBERS: Final = """
add_key 248 217
bpf 321 280
chmod 90 -
chroot 161 51
clone 56 220
clone3 435 435
creat 85 -
delete_module 176 106
fanotify_init 300 262
fchmod 91 52
fchmodat 268 53
fchmodat2 452 452
file_setattr 469 469
finit_module 313 273
fsconfig 431 431
fsmount 432 432
fsopen 430 430
fspick 433 433
init_module 175 105
io_uring_enter 426 426
io_uring_register 427 427
io_uring_setup 425 425
ioctl 16 29
ioprio_set 251 30
kcmp 312 272
kexec_file_load 320 294
kexec_load 246 104
keyctl 250 219
lookup_dcookie 212 18
lremovexattr 198 15
lsetxattr 189 6
mknod 133 -
mknodat 259 33
mmap 9 222
modify_ldt 154 -
mount 165 40
mount_setattr 442 442
move_mount 429 429
move_pages 279 239
mq_open 240 180
msgget 68 186
nfsservctl 180 42
open 2 -
open_by_handle_at 304 265
open_tree 428 428
open_tree_attr 467 467
openat 257 56
openat2 437 437
perf_event_open 298 241
pidfd_getfd 438 438
pivot_root 155 41
prlimit64 302 261
process_madvise 440 440
process_mrelease 448 448
process_vm_readv 310 270
process_vm_writev 311 271
ptrace 101 117
quotactl 179 60
quotactl_fd 443 443
reboot 169 142
removexattr 197 14
removexattrat 466 466
request_key 249 218
semget 64 190
setns 308 268
setpriority 141 140
setxattr 188 5
setxattrat 463 463
shmget 29 194
socket 41 198
socketpair 53 199
swapoff 168 225
swapon 167 224
syslog 103 116
umount2 166 39
unshare 272 97
uselib 134 -
userfaultfd 323 282
vhangup 153 58
"""
_TABLE: Final = {name: (first, second) for name, first, second in map(str.split, _NUMBERS.split("\n")[1:-1])}


def number_of(name: str, machine: int) -> int | None:
    """
    The number of the call *name*. Returns None if the *machine* does not have it.
    """
    first, second = _TABLE[name]
    number = first if machine == X86_64 else second
    return None if number == "-" else int(number)


REFUSED: Final = (
    # Other processes and what they hold.
    *("kcmp", "pidfd_getfd", "process_madvise", "process_mrelease", "process_vm_readv", "process_vm_writev", "ptrace"),
    # Another view of files, another root, files without a path.
    *("chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr", "move_mount", "open_by_handle_at"),
    *("open_tree", "open_tree_attr", "pivot_root", "setns", "umount2", "unshare", "quotactl", "quotactl_fd"),
    # The kernel itself.
    *("bpf", "delete_module", "fanotify_init", "finit_module", "init_module", "kexec_file_load", "kexec_load"),
    *("lookup_dcookie", "modify_ldt", "nfsservctl", "perf_event_open", "reboot", "swapoff", "swapon", "syslog"),
    *("uselib", "userfaultfd", "vhangup"),
    # Keys of the session.
    *("add_key", "keyctl", "request_key"),
)
"""Answered with EPERM."""
ABSENT: Final = ("clone3", "io_uring_enter", "io_uring_register", "io_uring_setup", "openat2")
"""
Answered with ENOSYS, so that programs fall back. A filter cannot look into what `clone3` and `openat2` are given, and
what runs in an `io_uring` passes no filter.
"""
SHARED_MEMORY: Final = ("mq_open", "msgget", "semget", "shmget")
"""By which processes talk where they share the namespace for it."""
ATTRIBUTES: Final = (
    "file_setattr",
    "lremovexattr",
    "lsetxattr",
    "removexattr",
    "removexattrat",
    "setxattr",
    "setxattrat",
)
"""
What is written beside a file's content, by its path: Landlock does not look at it. Programs take it for a file system
without attributes.
"""
