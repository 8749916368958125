"""
A root of its own for what the fuzzer runs: started as `python -I -S jail.py PLAN`, by nobody in particular.

User namespaces are all that it needs of a machine: no root, no program beside Python. In the new root are the libraries of
this system (read-only), a Python, bash, dash, the fuzzer and the language that it tries, and a folder in memory. What it
shuts out is proved by what then runs inside (`jailed/conditions.py`), before the first command and after the last.
"""
# ruff: noqa: T201 (standard error is where it says why it does not start)

import json
import os
import resource
import shutil
import signal
import socket
import sys

from pathlib import Path
from typing import Any, Final


sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.shellfuzz.jailed import kernel


REFUSED: Final = 3
"""The exit code of a jail that does not start, or that proves to be none."""
LIBRARIES: Final = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64")
SHELLS: Final = ("bash", "dash")
INSIDE: Final = 1000
"""The user that all in the jail is run by, as the jail sees it."""
LIMITS: Final = (
    (resource.RLIMIT_AS, 2 << 30),
    (resource.RLIMIT_NPROC, 2_000),
    (resource.RLIMIT_FSIZE, 8 << 20),
    (resource.RLIMIT_NOFILE, 256),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
)
START: Final = (
    "import sys; sys.path.insert(0, '/fuzz'); from tests.shellfuzz.jailed.driver import main; sys.exit(main(sys.argv))"
)


def main(plan_file: str) -> int:
    """
    The exit code of what ran in the jail that the JSON file *plan_file* describes, REFUSED if there is no jail.
    """
    plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
    holes = frozenset(plan["holes"])
    if os.getuid() == 0 or os.geteuid() == 0:
        print("the fuzzer does not run as root", file=sys.stderr)
        return REFUSED
    try:
        reach(plan)
        kernel.die_with_parent(signal.SIGKILL)
        if "privileges" not in holes:
            kernel.gain_no_privileges()
        alone(holes)
        mine = os.getpid()
        child = os.fork()
    except OSError as error:
        print(f"no jail can be made here: {error}", file=sys.stderr)
        return REFUSED
    if child:  # it is the process outside that those inside must not see
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        build(plan, holes, mine)
    except OSError as error:
        print(f"no jail can be made here: {error}", file=sys.stderr)
    return REFUSED


def reach(plan: dict[str, Any]) -> None:
    """
    Prove that from out here the canaries can be reached: else it would prove nothing that from inside they cannot.
    """
    canary = Path(plan["canary"]["file"])
    if canary.read_text(encoding="utf-8") != plan["canary"]["token"]:
        raise OSError("the canary is not as it was left")
    with canary.open("r+", encoding="utf-8"):
        pass
    with socket.create_connection(("127.0.0.1", plan["canary"]["port"]), timeout=5):
        pass
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.connect("\0" + plan["canary"]["socket"])
    os.kill(os.getpid(), 0)


def alone(holes: frozenset[str]) -> None:
    """
    Namespaces of its own for this process, those of processes for its children.
    """
    user, group = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    kernel.unshare(flags | (0 if "network" in holes else kernel.CLONE_NEWNET))
    inside = 0 if "user" in holes else INSIDE
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{inside} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{inside} {group} 1", encoding="ascii")
    if "processes" not in holes:
        kernel.unshare(kernel.CLONE_NEWPID)


def build(plan: dict[str, Any], holes: frozenset[str], outside_process: int) -> None:
    """
    Make the root, enter it, give up all rights and become the driver.
    """
    root, stage = Path(plan["root"]), plan["stage"]
    outside = os.open("/", os.O_RDONLY) if "handles" in holes else None
    if outside is not None:
        os.set_inheritable(outside, True)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("jail", str(root), "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=16m,nr_inodes=1000,mode=755")
    for name in LIBRARIES:
        if os.path.islink(name):
            place(root, name).symlink_to(os.readlink(name))
        elif os.path.isdir(name):
            shown(root, name, name)
    for name in SHELLS:
        shutil.copy(plan["shells"][name], place(root, f"/bin/{name}"))
    shutil.copytree(f"{stage}/programs", root / "programs")
    if plan["prefix"] is not None:
        shown(root, plan["prefix"], "/python")
    elif Path(plan["python"]).is_file():
        shutil.copy(plan["python"], place(root, plan["python"]))
    shown(root, stage, "/fuzz")
    place(root, "/dev/null").touch()
    kernel.bind("/dev/null", f"{root}/dev/null", flags=0)
    for name in ("world", "log"):
        (root / name).mkdir()
        kernel.mount(name, f"{root}/{name}", "tmpfs", kernel.MS_NOSUID, "size=64m,nr_inodes=20000,mode=755")
    if "files" in holes:
        shown(root, str(Path(plan["canary"]["file"]).parent), str(Path(plan["canary"]["file"]).parent), flags=0)
    if "repository" in holes:
        place(root, f"{plan['repository']}/x")
    if "home" in holes:
        place(root, f"{plan['homes'][0]}/x")
    if "root" not in holes:
        kernel.mount("none", str(root), None, kernel.MS_REMOUNT | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV)
    kernel.enter_root(str(root))
    for limit, most in LIMITS:
        resource.setrlimit(limit, (most, most))
    if "capabilities" not in holes:
        kernel.drop_capabilities()
    kernel.die_with_parent(signal.SIGKILL)
    os.closerange(3 if outside is None else outside + 1, 4096)
    python = plan["python"] if plan["prefix"] is None else "/python/" + plan["python"]
    library = {} if plan["prefix"] is None else {"LD_LIBRARY_PATH": "/python/lib"}
    os.execve(python, [python, "-I", "-S", "-B", "-c", START, str(outside_process)], {"LC_ALL": "C.UTF-8", **library})


def place(root: Path, path: str) -> Path:
    """
    Where *path* is under *root*, with the folders above it.
    """
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def shown(root: Path, source: str, path: str, *, flags: int = kernel.MS_RDONLY) -> None:
    """
    Show the folder *source* as *path* of the new root.
    """
    target = place(root, path)
    target.mkdir()
    kernel.bind(source, str(target), flags=flags)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
