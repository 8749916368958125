"""
What the tests share: a clock that only moves when told, and the settings of the property tests.
"""

import itertools
import os
import signal
import tempfile
import threading

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hypothesis import HealthCheck, settings


# Behaviours of the hosts say what they found, as a test does; here, since nothing may have imported them before.
pytest.register_assert_rewrite("tests.hosts.behaviours")


class FakeClock:
    """
    Seconds since 1970; starts in 2026 and stands still.
    """

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def together(work: Callable[[int], object], many: int) -> None:
    """
    Do *work* for each number, all at once.
    """
    barrier = threading.Barrier(many)

    def one(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(many) as pool:
        list(pool.map(one, range(many)))


@pytest.fixture
def works() -> None:
    """
    A sandbox that works here, or the test is skipped.
    """
    from guardrails.core.values.errors import SandboxUnavailable
    from guardrails.processes.sandbox import bubblewrap

    try:
        bubblewrap()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """
    Threads that take turns every microsecond.
    """
    import sys

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def sendable(said: Any) -> Any:
    """
    What a worker says of a test, with lone surrogates as escapes: it goes to the terminal's process as UTF-8.
    """
    match said:
        case str():
            return said.encode("utf-8", "backslashreplace").decode()
        case list() | tuple():
            return type(said)(sendable(part) for part in said)
        case dict():
            return {sendable(name): sendable(part) for name, part in said.items()}
    return said


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    return sendable((yield))


# A shell that starts the tests in the background has them ignore SIGINT, and with them each process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A list of certificates that is set and not there stops each client before its first request, to this machine too.
for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
    if not Path(os.environ.get(variable, "/")).exists():
        del os.environ[variable]

# What programs of these tests keep for their user is nobody's own: each test has a folder for it.
_state = tempfile.TemporaryDirectory(prefix="guardrails-state-")
os.environ["XDG_STATE_HOME"] = _state.name
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def own_state() -> None:
    """
    Nothing that an earlier test left for its user.
    """
    os.environ["XDG_STATE_HOME"] = f"{_state.name}/{next(_numbers)}"


@pytest.fixture(scope="session")
def long() -> bool:
    """
    How hard to try: GUARDRAILS_HARD=long takes the long form of a test, the gate the short one.
    """
    return os.environ.get("GUARDRAILS_HARD") == "long"


for profile, examples in (("quick", 25), ("gate", 50), ("long", 5_000)):
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        # A gate tells of the change that it is asked about: new examples are for the other two.
        derandomize=profile == "gate",
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
