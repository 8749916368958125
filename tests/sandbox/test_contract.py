"""
What every sandbox keeps: files, secrets, sockets, the environment.
"""

import os
import tempfile

from pathlib import Path

import pytest

from .conftest import Listening, Place


GONE = frozenset({"ENOENT", "EACCES", "EPERM", "EROFS", "EXDEV", "ENOTDIR"})


def test_a_command_works_in_the_workspace(place: Place) -> None:
    ended = place.start(["sh", "-c", "pwd; echo x > made; cat made | tr x y; exit 3"])
    assert ended.output == f"{place.workspace}\ny\n"
    assert ended.exit_code == 3
    assert (place.workspace / "made").read_text() == "x\n"


@pytest.mark.parametrize("shown", [False, True], ids=["hidden", "shown"])
def test_nothing_outside_is_written(place: Place, shown: bool) -> None:
    said = place.said(
        """
secret = told + "/secret"
say({
    "write": failed(open, told + "/new", "w"),
    "append": failed(open, secret, "a"),
    "empty": failed(os.truncate, secret, 0),
    "empty by reading": failed(os.open, secret, os.O_RDONLY | os.O_TRUNC),
    "folder": failed(os.mkdir, told + "/folder"),
    "rename": failed(os.rename, secret, told + "/renamed"),
    "take": failed(os.rename, secret, "taken"),
    "put": failed(os.rename, "own", told + "/own"),
    "remove": failed(os.unlink, secret),
    "link out": failed(os.symlink, "x", told + "/link"),
    "hard link in": failed(os.link, secret, "linked"),
    "device": failed(os.mkfifo, told + "/fifo"),
} if not open("own", "w").close() else None)
""",
        told=str(place.outside),
        readable=(str(place.outside),) if shown else (),
    )
    assert set(said.values()) <= GONE, said
    assert names(place.outside) == ["secret"]
    assert (place.outside / "secret").read_text() == "planted"


def test_a_planted_secret_is_not_read(place: Place) -> None:
    paths = [str(place.outside / "secret"), str(place.home / ".ssh" / "id"), "/etc/shadow", "/proc/kcore"]
    paths += [f"{place.workspace}/../.ssh/id", "linked"]
    (place.workspace / "linked").symlink_to(place.home / ".ssh" / "id")
    said = place.said("say([failed(open, path) for path in told])", told=paths)
    assert set(said) <= GONE, said


def test_the_kernel_is_not_set(place: Place) -> None:
    # Opened only: nothing is written even if that succeeds.
    paths = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/sys/fs/suid_dumpable",
    ]
    paths += [
        "/proc/irq/default_smp_affinity",
        "/sys/devices/system/cpu/cpu1/online",
        "/proc/mtrr",
        "/etc/passwd",
        "/usr/bin/env",
    ]
    said = place.said("say([failed(os.open, path, os.O_WRONLY) for path in told])", told=paths)
    assert set(said) <= GONE, said


def test_a_readable_link_is_found_by_either_name(place: Place) -> None:
    link, inner = place.outside / "link", place.outside / "link" / "inner"
    target = place.outside / "target"
    (target / "inner").mkdir(parents=True)
    (target / "inner" / "file").write_text("x")
    link.symlink_to(target)
    names = [str(link), str(inner), str(link), str(target)]
    said = place.said(
        "say([failed(open, path + '/inner/file') for path in told])", told=[names[0], names[3]], readable=tuple(names)
    )
    assert said == [None, None]


def test_nothing_is_reached_by_way_of_another_process(place: Place) -> None:
    ways = [f"/proc/{os.getpid()}", f"/proc/{os.getppid()}", "/proc/1"]
    secret = str(place.outside / "secret")
    with (place.outside / "secret").open() as kept:
        paths = [f"{way}/{kind}{secret}" for way in ways for kind in ("root", "cwd/../../../../../../../..")]
        paths += [f"{ways[0]}/fd/{kept.fileno()}", f"{ways[0]}/mem", f"{ways[0]}/environ", f"{ways[0]}/auxv"]
        said = place.said("say([failed(open, path, 'rb') for path in told])", told=paths)
    assert None not in said, dict(zip(paths, said, strict=True))


def test_the_folders_of_the_system_are_listed(place: Place) -> None:
    assert (
        place.said("say([failed(os.listdir, path) for path in told])", told=["/etc", "/usr/bin", "/proc"]) == [None] * 3
    )


def test_what_is_named_as_readable_is_read(place: Place) -> None:
    said = place.said("say(open(told).read())", told=str(place.outside / "secret"), readable=(str(place.outside),))
    assert said == "planted"


def test_a_further_folder_is_written_to(place: Place) -> None:
    place.said("say(failed(open, told + '/new', 'w'))", told=str(place.outside), writable=(str(place.outside),))
    assert (place.outside / "new").exists()


def test_links_in_the_workspace_lead_nowhere(place: Place) -> None:
    (place.workspace / "folder").symlink_to(place.outside)
    (place.workspace / "file").symlink_to(place.outside / "secret")
    said = place.said(
        "say([failed(open, 'folder/new', 'w'), failed(open, 'file', 'w'), failed(open, 'file'), failed(os.listdir, 'folder')])"
    )
    assert set(said) <= GONE, said
    assert names(place.outside) == ["secret"]


SOCKETS = """
def reach(family, kind, address):
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)
        made.send(b"x")
def send(address):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", address)
I, U, S, D = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM
say({
    "tcp": failed(reach, I, S, ("127.0.0.1", told["tcp"])),
    "udp": failed(reach, I, D, ("127.0.0.1", told["udp"])),
    "unix": failed(reach, U, S, told["path"]),
    "datagrams": failed(reach, U, D, told["path"] + "-datagrams"),
    "by a pair": failed(send, told["path"] + "-datagrams"),
    "abstract": failed(reach, U, S, chr(0) + told["abstract"]),
})
"""


def asked(listening: Listening) -> dict[str, object]:
    return {"tcp": listening.tcp, "udp": listening.udp, "path": listening.path, "abstract": listening.abstract}


def test_no_socket_is_reached(place: Place, listening: Listening) -> None:
    said = place.said(SOCKETS, told=asked(listening))
    assert listening.reached() == []
    said.pop("udp")  # a network of its own takes it, and nobody is there
    assert None not in said.values(), said


def test_an_allowed_network_is_reached_and_local_sockets_are_not(place: Place, listening: Listening) -> None:
    said = place.said(SOCKETS, told=asked(listening), network=True)
    assert said["tcp"] is None
    assert said["udp"] is None
    reached = listening.reached()
    assert reached[:2] == ["AF_INET SOCK_STREAM", "AF_INET SOCK_DGRAM"]
    if not any("abstract" in text for text in place.backend.cannot) or kernel() >= (6, 12):
        assert reached[2:] == []


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


def test_sockets_of_other_kinds_are_not_made(place: Place) -> None:
    kinds = [38, 40, 17, 31, 44]  # crypto, vsock, packets, Bluetooth, XDP
    said = place.said(
        "say([failed(socket.socket, kind, socket.SOCK_DGRAM) for kind in told])", told=kinds, network=True
    )
    assert set(said) <= {"EACCES"}, said


def test_the_environment_is_the_listed_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "planted-in-the-environment")
    said = place.said(
        """
found = []
for name in os.listdir("/proc"):
    if name.isdecimal():
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                found.append(b"planted-in-the-environment" in file.read())
        except OSError:
            pass
say([sorted(os.environ), any(found)])
"""
    )
    assert set(said[0]) - {"LC_CTYPE", "TAR_OPTIONS"} == {"GUARDRAILS_COMMAND", "HOME", "PATH", "TMPDIR"}
    assert said[1] is False


def test_temporary_files_are_its_own(place: Place) -> None:
    code = """
folder, home = os.environ["TMPDIR"], os.environ["HOME"]
seen = [path for path in told if os.path.exists(path)] + [os.path.exists(folder + "/a"), os.path.exists(home + "/written")]
os.makedirs(folder + "/a/b")
open(folder + "/a/b/file", "w").close()
os.chmod(folder + "/a", 0)
open(home + "/written", "w").close()
say([folder, home, seen])
"""
    with tempfile.NamedTemporaryFile() as others:
        # Landlock hides content, not that it exists.
        told = [others.name] if place.backend.name == "bwrap" else []
        folder, home, seen = place.said(code, told=told)
        # Another user's folder of that name says nothing.
        assert not any(os.path.exists(path) for path in (f"{folder}/a", f"{home}/written"))  # noqa: PTH110
        assert seen == place.said(code, told=told)[2] == [False, False]


@pytest.mark.parametrize(("arguments", "code"), [(["no-such-program"], 127), (["/etc/passwd"], 126)])
def test_a_program_that_cannot_be_started_is_told(place: Place, arguments: list[str], code: int) -> None:
    ended = place.start(arguments)
    assert ended.exit_code == code
    assert arguments[0] in ended.output


def test_a_long_argument_arrives_whole(place: Place) -> None:
    text = "äx\n'\"$" * 20_000
    ended = place.start(["printf", "%s", text[:90_000]])
    assert ended.output == text[:90_000]
