"""
What every sandbox limits, and that all of it ends.
"""

import asyncio
import os
import subprocess
import time

import pytest

from guardrails.processes.sandbox import Limits
from guardrails.processes.sandbox.folders import interpreter

from .conftest import PREFACE, Free, Place


@pytest.mark.parametrize(
    ("limits", "code", "codes"),
    [
        (Limits(memory_bytes=200 << 20), "bytearray(600 << 20)", {1}),
        (Limits(memory_bytes=200 << 20), "import mmap; mmap.mmap(-1, 600 << 20)", {1}),
        (Limits(cpu_s=1), "while True: pass", {-24, 152}),
        (Limits(file_bytes=1 << 20), "open('big', 'wb').write(bytes(1 << 21))", {-25, 153, 1}),
        (Limits(file_bytes=1 << 20), "os.truncate(os.open('big', os.O_CREAT | os.O_WRONLY), 1 << 40)", {-25, 153, 1}),
    ],
    ids=["memory", "shared memory", "cpu", "file", "sparse file"],
)
def test_limits_hold(place: Place, limits: Limits, code: str, codes: set[int]) -> None:
    ended = place.run(code, limits=limits)
    assert ended.exit_code in codes, ended
    assert not (place.workspace / "big").exists() or (place.workspace / "big").stat().st_size <= 1 << 20


def test_processes_are_limited_and_all_end(place: Place, free: Free) -> None:
    # At most 120 of them, each asleep for seconds: harmless without a limit too.
    code = """
import fcntl
file = open("lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
made = 0
try:
    for _ in range(120):
        if os.fork() == 0:
            time.sleep(8)
            os._exit(0)
        made += 1
        time.sleep(0.005)
except OSError:
    pass
print(made, flush=True)
time.sleep(1)
"""
    ended = place.run(code, limits=Limits(processes=40))
    made = int(next((line for line in ended.output.splitlines() if line.isdecimal()), "0"))
    assert made < 60
    if os.geteuid() == 0:
        assert ended.exit_code != 0
        assert "more processes than the limit" in ended.output
    assert free()


@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel counts no processes of root")
def test_who_has_many_processes_may_start_some_more(place: Place) -> None:
    others = [subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL) for _ in range(60)]  # noqa: S607
    try:
        ended = place.start(
            ["sh", "-c", "sleep 0.1 | sleep 0.1 | sleep 0.1 | cat; echo done"], limits=Limits(processes=30)
        )
        assert ended.output == "done\n"
    finally:
        for other in others:
            other.kill()
            other.wait()


STAYS = """
import fcntl
def stay():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    file = open("lock", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    open("ready", "w").close()
    os.closerange(0, 3) if told["quiet"] else None
    time.sleep(60)
def away():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if told["forgets"]:
                os.execve(sys.executable, [sys.executable, "-I", "-S", "-c",
                    "import fcntl,time;f=open('lock','w');fcntl.flock(f,2);open('ready','w');time.sleep(60)"], {})
            stay()
        os._exit(0)
away()
while not os.path.exists("ready"):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("quiet", [False, True], ids=["with output", "without output"])
@pytest.mark.parametrize("forgets", [False, True], ids=["marked", "without a mark"])
def test_what_it_leaves_behind_ends_with_it(place: Place, free: Free, quiet: bool, forgets: bool) -> None:
    started = time.monotonic()
    ended = place.run(STAYS, told={"quiet": quiet, "forgets": forgets})
    assert ended.exit_code == 0, ended
    assert time.monotonic() - started < 30
    assert (place.workspace / "ready").exists()
    assert free()


@pytest.mark.parametrize("ending", ["stay()", "away(); stay()", "os.fork() or stay(); stay()"])
def test_at_its_time_limit_all_of_it_ends(place: Place, free: Free, ending: str) -> None:
    code = STAYS.removesuffix('away()\nwhile not os.path.exists("ready"):\n    time.sleep(0.01)\n') + ending
    started = time.monotonic()
    ended = place.run(code, timeout=5, told={"quiet": False, "forgets": False})
    assert ended.exit_code is None
    assert time.monotonic() - started < 30
    assert (place.workspace / "ready").exists()
    assert free()


def test_it_is_started_by_asyncio_too(place: Place) -> None:
    async def spoken() -> tuple[bytes, int | None]:
        started = place.backend.started(place.confinement(), ["cat"])
        process = await asyncio.create_subprocess_exec(
            *started.arguments,
            env=dict(started.environment),
            cwd=started.folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        out, _ = await process.communicate(b"line\n")
        return out, process.returncode

    assert asyncio.run(spoken()) == (b"line\n", 0)


def test_a_request_to_end_ends_all_of_it(place: Place, free: Free) -> None:
    code = PREFACE + STAYS + "time.sleep(60)"
    started = place.backend.started(
        place.confinement(), [interpreter(), "-I", "-S", "-c", code, '{"quiet": true, "forgets": true}']
    )
    process = subprocess.Popen(  # noqa: S603
        started.arguments, env=dict(started.environment), cwd=started.folder, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 10
        while not (place.workspace / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.terminate()
        process.wait(5)
        while not free() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert free()
    finally:
        process.kill()
        process.wait()
