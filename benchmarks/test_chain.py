"""
What the whole chain costs a call: decided, run, settled, recorded, and written as the text that the model reads. Each row of the
table in docs/measurements.md is one case here, and the end of a run prints the table.

The policy is `default` with more calls than it allows; records go to a file of JSON lines, whose writer is let finish
between the rounds and not while they are timed. Each case fails unless all of its calls come to what it is named after, and unless each has
left its line in the file. A figure is the median of the rounds' processor time over the median of R, which is timed before each round.

The tool does nothing and gives back one of 23 dicts of 0.5 KB, made beforehand: more than a session remembers, so that no
result is one that came before. The clock goes on by half a second at each look: each call is a turn of its own, as an agent's are. What counts
is the processor time of the thread that calls: on a busy machine a round of milliseconds is seldom left alone.
"""

import asyncio
import itertools
import json
import statistics
import time

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from guardrails import Budget, Duplicates, Envelope, JsonLines, Policy, Rules, Session, Tool
from guardrails.offline.replay.run import judge_files
from guardrails.offline.transcripts.files import inputs


R: Final = 30
"""How often the yardstick is run in one look at it: twenty stores into a dict, and their sum."""
MANY: Final = 10**9
POLICY: Final = f"""
version: 1
extends: default
budget: {{max_calls: {MANY}}}
growth: {{max_calls_per_second: {MANY}}}
"""
CALLS: Final = 50
"""In one round: few enough to end before the writer of records begins, which waits 50 ms for more."""
JUDGED: Final = 10_000
"""Recorded calls of the replay."""
TOOL: Final = "search_hotels"
PARAMETERS: Final = {"type": "object", "properties": {"city": {"type": "string"}, "page": {"type": "integer"}}}


def hotels(count: int, **more: int) -> list[Any]:
    same = {"stars": 4, "free": True}
    rows = [
        [{"id": f"h_{n}", "name": f"Hotel {k}-{n}", "price": 100 + n, **same} for n in range(count)] for k in range(23)
    ]
    return [{"results": each, **more} for each in rows]


def texts(lines: int, count: int) -> list[str]:
    words = "line of text {}.{}: the quick brown fox jumps over a list of results, and there is no more to return"
    return ["\n".join(words.format(k, n) for n in range(lines)) for k in range(count)]


HOTELS: Final = hotels(7, total=7)
PROGRESS: Final = [{"job": "j_17", "status": "running", "percent": n} for n in range(97)]
FAILURES: Final = [TimeoutError(f"The supplier API did not respond within {n + 1} seconds.") for n in range(300)]
"""More than `family_hash` remembers: each says something new."""
STUMBLES: Final = [FAILURES[n // 10] if n % 10 == 9 else HOTELS[n % 23] for n in range(2_300)]

Block = Callable[[], float]
"""The seconds of processor time that a round of `CALLS` took."""
_pages = itertools.count()
_calls = itertools.count()


class Expected(NamedTuple):
    """
    What each call of a case comes to, and the characters that its text for the model has at least. With *nudged* None, either may be.
    """

    status: str
    code: str | None = None
    nudged: bool | None = False
    text: int = 0

    def met(self, envelope: Envelope, text: str) -> bool:
        told = (envelope.status, envelope.code)
        return told == self[:2] and self.nudged in (None, envelope.nudged) and len(text) >= self.text


ALLOWED: Final = Expected("success", text=400)
REPEATED: Final = Expected("duplicate_call_blocked", "duplicates.evidence")
INVALID: Final = Expected("validation_error", "validation.arguments")
FAILED: Final = Expected("error", nudged=None)
"""With a hint from the fourth on."""


def clock(step: float = 0.5) -> Callable[[], float]:
    return itertools.count(1.8e9, step).__next__


def giving(results: Sequence[Any]) -> Callable[[str, Any], Any]:
    """
    A tool for one session: what another session was given is no result that came before in this one.
    """
    given = itertools.cycle(results)

    def execute(tool: str, arguments: Any) -> Any:
        result = next(given)
        if isinstance(result, Exception):
            raise result
        return result

    return execute


def new(page: int) -> dict[str, Any]:
    return {"city": "Shibuya", "max_price": 150, "page": page}


def equal(page: int) -> dict[str, Any]:
    return {"city": "Shibuya", "max_price": 150}


def unfit(page: int) -> dict[str, Any]:
    return {"city": "Shibuya", "page": f"page {page}"}


def calls(
    sessions: Session | Sequence[Session],
    results: Sequence[Any] = HOTELS,
    arguments: Callable[[int], dict[str, Any]] = new,
    expected: Expected | Sequence[Expected] = ALLOWED,
    tools: Sequence[str] = (TOOL,),
) -> Block:
    """
    Makes `CALLS` calls; *sessions* and *tools* take turns, and each call comes to what is *expected* of it in turn.

    Raises AssertionError if one of them came to anything else.
    """
    execute, names = giving(results), itertools.cycle(tools)
    each_session = itertools.cycle([sessions] if isinstance(sessions, Session) else sessions)
    told = itertools.cycle([expected] if isinstance(expected, Expected) else expected)

    def run() -> float:
        # Made beforehand: arguments come from a model.
        asked = [arguments(next(_pages)) for _ in range(CALLS)]
        waiting = list(zip(asked, (one.call for one in each_session), names, told, strict=False))
        met = 0
        start = time.thread_time()
        for each, call, name, (status, code, nudged, least) in waiting:
            envelope = call(name, each, execute)
            text = envelope.to_json()
            # Counted here, and not kept until later: to let go of an envelope is a part of what it costs.
            same = envelope.status == status and envelope.code == code
            met += same and nudged in (None, envelope.nudged) and len(text) >= least
        took = time.thread_time() - start
        assert met == CALLS, f"{CALLS - met} of {CALLS} calls are not {expected}, the last is {text[:2000]}"
        next(_calls)
        return took

    return run


def awaited(session: Session, loop: asyncio.AbstractEventLoop) -> Block:
    """
    The same for fresh calls of an asynchronous tool, within a loop that runs: its own start and end are no part of a call.
    """
    given = itertools.cycle(HOTELS)

    async def search(tool: str, arguments: Any) -> Any:
        return next(given)

    async def run() -> float:
        waiting, met = [new(next(_pages)) for _ in range(CALLS)], 0
        start = time.thread_time()
        for each in waiting:
            envelope = await session.acall(TOOL, each, search)
            met += ALLOWED.met(envelope, envelope.to_json())
        took = time.thread_time() - start
        assert met == CALLS
        return took

    return lambda: loop.run_until_complete(run())


class Table:
    """
    Times the blocks of a row in turns with R, and notes its figures.
    """

    def __init__(self, benchmark: Any) -> None:
        self.benchmark = benchmark
        benchmark.pedantic(lambda: None, rounds=1)

    def row(self, name: str, aim: str, *blocks: Block, before: Callable[[], object] = lambda: None) -> list[float]:
        """
        Returns the medians of *blocks* in R a call, shown as `26.1` or `24.0 / 25.1`. Without benchmarks each runs once.
        """
        warm = [block() for block in blocks]
        longest: Any = self.benchmark._max_time  # noqa: SLF001  what the command line says
        rounds = min(max(int(2 * longest / sum(warm)), 5), 400) if self.benchmark.enabled else 1
        taken: list[list[float]] = [[] for _ in blocks]
        yard: list[float] = []
        for _ in range(rounds):
            start = time.thread_time()
            references()
            yard.append((time.thread_time() - start) / R)
            for block, times in zip(blocks, taken, strict=True):
                before()
                times.append(block() / CALLS)
        r = statistics.median(yard)
        found = [statistics.median(times) / r for times in taken]
        self.say(name, aim, " / ".join(f"{each:.1f}" for each in found), statistics.median(taken[0]))
        return found

    def say(self, name: str, aim: str, figure: str, seconds: float) -> None:
        self.benchmark.extra_info.update(row=name, aim=aim, figure=figure, median_us=seconds * 1e6)


def references() -> None:
    for _ in range(R):
        stored = {}
        for number in range(20):
            stored[number] = number
        sum(stored.values())


@pytest.fixture
def default(tmp_path: Path) -> Policy:
    """
    `default`, but for how many calls it allows.
    """
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return Policy.load(file)


@pytest.fixture
def table(benchmark: Any) -> Table:
    return Table(benchmark)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[JsonLines]:
    """
    A file of records, which at the end holds a decision for each call that was timed.
    """
    file, first = tmp_path / "records.jsonl", next(_calls)
    with JsonLines(file) as sink:
        yield sink
    rounds = next(_calls) - first - 1
    decided = sum(json.loads(line)["event"] == "call" for line in file.read_bytes().splitlines()) if rounds else 0
    assert decided >= rounds * CALLS, f"{rounds * CALLS} calls left {decided} decisions"


ONE_KB, SIXTEEN_KB, ROWS = texts(11, 97), texts(165, 23), hotels(920)
POLLED: Final = {"tools": [Tool(name=TOOL, repeats="allow")]}
FRESH: Final[dict[str, tuple[str, Any, Any, Any, Any]]] = {
    "fresh dict": ("26", HOTELS, new, ALLOWED, {}),
    "text of 1 KB with common words": ("40", ONE_KB, new, Expected("success", text=1_000), {}),
    "text of 16 KB": ("50", SIXTEEN_KB, new, Expected("success", text=16_000), {}),
    "64 KB of rows": ("150", ROWS, new, Expected("success", text=63_000), {}),
    "polling, each answer another": ("45", PROGRESS, equal, Expected("success", text=40), POLLED),
    "polling, equal answers, with a hint": ("", HOTELS[:1], equal, Expected("success", nudged=True), POLLED),
    "failing: an exception, each of another text": ("90", FAILURES, new, FAILED, {}),
    "every tenth call failing, a call": ("45", STUMBLES, new, [*[ALLOWED._replace(nudged=None)] * 9, FAILED], {}),
}


@pytest.mark.parametrize("name", FRESH)
def test_a_call(name: str, table: Table, default: Policy, sink: JsonLines) -> None:
    aim, results, arguments, expected, options = FRESH[name]
    session = default.session("s", records=sink, clock=clock(), **options)
    if "with a hint" in name:
        for _ in range(CALLS):
            session.call(TOOL, equal(0), giving(HOTELS[:1]))
    table.row(name, aim, calls(session, results, arguments, expected), before=sink.flush)


@pytest.mark.parametrize(
    ("name", "aim", "arguments", "expected", "step"),
    [
        # Equal results speak for half a minute only.
        ("refused duplicate", "28", equal, REPEATED, 0.0001),
        ("invalid arguments", "32", unfit, INVALID, 0.5),
    ],
)
def test_a_refused_call(
    name: str, aim: str, arguments: Any, expected: Expected, step: float, table: Table, default: Policy, sink: JsonLines
) -> None:
    tools = [Tool(name=TOOL, parameters=PARAMETERS)] if expected is INVALID else []
    session = default.session("refused", records=sink, clock=clock(step), tools=tools)
    for _ in range(2 if expected is REPEATED else 0):
        assert session.call(TOOL, equal(0), giving(HOTELS[:1])).ok

    def before() -> None:
        # One new turn each round, with none of the refusals before: turns of nothing but refusals would end the session.
        session.begin_turn()
        session.extend()
        sink.flush()

    before()
    table.row(name, aim, calls(session, HOTELS[:1], arguments, expected), before=before)


def test_awaited(table: Table, default: Policy, sink: JsonLines) -> None:
    here = calls(default.session("sync", records=sink, clock=clock()))
    with closing(asyncio.new_event_loop()) as loop:
        block = awaited(default.session("async", records=sink, clock=clock()), loop)
        over, sync = table.row("awaited / not", "1.15 times", block, here, before=sink.flush)
    table.benchmark.extra_info["figure"] = f"{over:.1f} / {sync:.1f}: {over / sync:.2f} times"


def test_minimal_policy_without_records(table: Table) -> None:
    policy = Policy([Budget(max_calls=MANY), Duplicates(window=20, rule="evidence")])
    table.row("two guards (budget, duplicates), no records", "18", calls(policy.session("two", clock=clock())))


MOST: Final = {"max": MANY, "per": "1h"}
RULED: Final[dict[str, tuple[str, Any]]] = {
    "a rule for `other_tool`": ("3 more", {"tools": "other_tool", "limit": MOST}),
    "a limit of calls": ("10 more", {"tools": TOOL, "limit": MOST}),
    "a sum of `args.page`": ("10 more", {"tools": TOOL, "limit": {**MOST, "sum": "args.page"}}),
    "`when: args.page < 0`": ("10 more, and CEL", {"tools": TOOL, "when": "args.page < 0", "deny": "no"}),
}


@pytest.mark.parametrize("name", RULED)
def test_rules(name: str, table: Table, default: Policy, sink: JsonLines) -> None:
    aim, rule = RULED[name]
    both: Any = ([Rules(rules=(rule,))], [])
    made = [Policy([*default.chain.guards, *more], rules=default.chain.rules) for more in both]
    blocks = [calls(policy.session("rules", records=sink, clock=clock())) for policy in made]
    table.row(f"{name} / none", aim, *blocks, before=sink.flush)


def timed(make: Callable[[str], object]) -> Block:
    """
    Makes something of `CALLS` new names.
    """

    def run() -> float:
        names = [f"search_{next(_pages)}" for _ in range(CALLS)]
        start = time.thread_time()
        for name in names:
            make(name)
        return time.thread_time() - start

    return run


def test_new_session(table: Table, default: Policy, sink: JsonLines) -> None:
    table.row("`policy.session()`", "15", timed(lambda name: default.session(name, records=sink)))


def test_new_tool(table: Table, default: Policy) -> None:
    table.row("plan of a new tool", "40", timed(default.session("plans").ledger.policy.chain.plan))


def grown(block: Block, count: int) -> Block:
    """
    *block* once each of *count* had its turn.
    """
    for _ in range(0, count, CALLS):
        block()
    return block


def test_many_tools(table: Table, default: Policy, sink: JsonLines) -> None:
    def over(count: int) -> Block:
        session = default.session(f"tools-{count}", records=sink, clock=clock())
        return grown(calls(session, tools=[f"search_{n}_of_{count}" for n in range(count)]), count)

    table.row("500 tools in turn / 2,000", "equal", over(500), over(2_000), before=sink.flush)


def test_many_sessions(table: Table, default: Policy, sink: JsonLines) -> None:
    def over(count: int) -> Block:
        # A policy of its own: its memory keeps so many sessions ready.
        policy = Policy(default.chain.guards, rules=default.chain.rules)
        return grown(calls([policy.session(f"s-{n}", records=sink, clock=clock()) for n in range(count)]), count)

    table.row("500 sessions in turn / 2,000", "equal", over(500), over(2_000), before=sink.flush)


def test_long_session(table: Table, default: Policy, sink: JsonLines) -> None:
    young, old = (calls(default.session(name, records=sink, clock=clock())) for name in ("young", "old"))
    for _ in range(400 if table.benchmark.enabled else 4):
        old()
        sink.flush()
    table.row("of a new session / after 20,000 calls", "equal", young, old, before=sink.flush)


def test_replay(table: Table, default: Policy, tmp_path: Path) -> None:
    """
    Recorded calls with results of 1.6 KB, of which some repeat and some fail, judged in one process.
    """
    file, results = tmp_path / "calls.jsonl", texts(16, JUDGED)
    with file.open("w") as written:
        for n, result in enumerate(results):
            fails = n % 20 == 7
            told = {
                "source": "bench",
                "session_id": f"s{n // 40}",
                "turn": n % 40,
                "call_index": n % 40,
                "tool": "Grep",
            }
            told |= {"arguments": {"pattern": f"name_{n // 3}", "path": "src"}, "result": result, "is_error": fails}
            told |= {"error_type": "timeout" if fails else None, "ts": 1.8e9 + n}
            written.write(json.dumps(told) + "\n")
    judge_files([default], inputs([str(file)]))  # what is imported and compiled once
    start = time.process_time()
    [judgement] = judge_files([default], inputs([str(file)]))
    took = time.process_time() - start
    assert judgement.total.calls == JUDGED
    assert judgement.total.refused < JUDGED // 10
    table.say("replay, calls a second of one core", "20,000", f"{JUDGED / took:,.0f}", took / JUDGED)
