"""
Starts the jails, a process each, and puts together what they say.
"""

import json
import selectors
import subprocess
import time

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from tests.shellfuzz.jailed.conditions import NAMES
from tests.shellfuzz.stage import NoJailError, as_nobody, staged


MAX_SAID: Final = 20_000_000
"""Bytes that one jail may say; one that says more is ended."""
SILENT_SECONDS: Final = 120.0
"""A jail that says nothing for so long is ended."""


@dataclass(slots=True)
class Result:
    """
    What came of a run.
    """

    proven: int = 0
    """Conditions that held in each jail, before the first command and after the last."""
    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    documented: Counter[str] = field(default_factory=Counter)
    found: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def fuzz(
    *,
    count: int,
    seed: int = 0,
    jobs: int = 1,
    first: int = 0,
    subject: str = "language",
    texts: tuple[str, ...] = (),
    holes: tuple[str, ...] = (),
    progress: Callable[[Result], None] | None = None,
) -> Result:
    """
    What became of *count* commands of *seed* from *first* on, or of *texts*, in *jobs* jails at once.

    Raises NoJailError if no jail can be made here, if one does not prove to be one, or if it ends before it is done.
    """
    begun = time.monotonic()
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        running = []
        for job in range(jobs):
            work = {"seed": seed, "first": first + job, "step": jobs, "count": first + count, "texts": list(texts)}
            command, _ = stack.enter_context(staged(subject=subject, holes=holes, **work))
            jail = _Jail(command)
            stack.callback(jail.end)
            running.append(jail)
            selector.register(jail.process.stdout, selectors.EVENT_READ, jail)  # type: ignore[arg-type]
        while selector.get_map():
            ready = selector.select(timeout=SILENT_SECONDS)
            if not ready:
                raise NoJailError(f"a jail said nothing for {SILENT_SECONDS:.0f} s")
            for key, _ in ready:
                if not key.data.heard():
                    selector.unregister(key.fileobj)
            if progress is not None:
                progress(_together(running, begun))
        for jail in running:
            jail.hold()
        return _together(running, begun)


class _Jail:
    """
    One jail and what it has said so far.
    """

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={},
            **as_nobody(),
        )
        self.said: dict[str, Any] = {}
        self.findings: list[dict[str, Any]] = []
        self.conditions: list[dict[str, Any]] = []
        self.done = False
        self.bytes = 0
        self.rest = b""

    def heard(self) -> bool:
        """
        Take in what it says now; whether there may be more.
        """
        assert self.process.stdout is not None
        more = self.process.stdout.read1(65_536)  # type: ignore[attr-defined]
        self.bytes += len(more)
        if self.bytes > MAX_SAID:
            raise NoJailError("a jail said more than it may")
        *lines, self.rest = (self.rest + more).split(b"\n")
        for line in lines:
            said = json.loads(line)
            match said["say"]:
                case "conditions":
                    self.conditions.append(said)
                case "found":
                    self.findings.append(said)
                case "progress" | "summary":
                    self.said = said
                    self.done = said["say"] == "summary"
        return bool(more)

    def hold(self) -> None:
        """
        Raise NoJailError unless it was a jail from begin to end and has tried all.
        """
        assert self.process.stderr is not None
        code = self.process.wait(timeout=30)
        complaint = self.process.stderr.read(4_000).decode(errors="replace").strip()
        broken = [line for each in self.conditions for line in each["broken"]]
        if broken:
            raise NoJailError("; ".join(broken))
        if not self.conditions:
            raise NoJailError(complaint or f"the jail ended with exit code {code}")
        if code or not self.done or len(self.conditions) != 2:
            raise NoJailError(f"the jail ended with exit code {code} before it was done: {complaint[-2_000:]}")

    def end(self) -> None:
        """
        End it, and with it all that runs in it.
        """
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def _together(running: list[_Jail], begun: float) -> Result:
    result = Result(seconds=time.monotonic() - begun)
    for jail in running:
        for name in ("counts", "refused", "documented"):
            counts = Counter[str](jail.said.get(name, {}))
            slowest = "slowest read, ms"
            most = max(getattr(result, name)[slowest], counts[slowest])
            getattr(result, name).update(counts)
            if most:
                getattr(result, name)[slowest] = most
        result.found += jail.said.get("found", 0)
        result.findings += jail.findings
    result.proven = min((each["proven"] for jail in running for each in jail.conditions), default=0)
    return result


def report(result: Result) -> str:
    """
    The figures of *result* as text, with each finding as a repr.
    """
    counts = result.counts
    lines = [
        f"{counts['commands']:,} commands in {result.seconds:.0f} s; {result.proven} of {len(NAMES)} conditions of the jail proven",
        f"  accepted {counts['accepted']:,}, refused {counts['refused']:,}, held back when run {counts['held back when it ran']:,}",
        f"  the same in bash {counts['the same in bash']:,}, in dash {counts['the same in dash']:,}",
        f"  {counts['programs started']:,} programs started; slowest read {counts['slowest read, ms']} ms",
        "  commands: "
        + _listed({name.split(", ")[1]: n for name, n in counts.items() if name.startswith("commands, ")}),
        "  refused: " + _listed(result.refused),
        "  documented differences: " + (_listed(result.documented) or "none"),
        f"  findings: {result.found:,}",
    ]
    for each in result.findings:
        lines += [
            f"    [{each['number']}, {each['kind']}] {each['sort']}: {each['small']:.600}",
            f"      {each['why']}",
        ]
    return "\n".join(lines)


def _listed(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
