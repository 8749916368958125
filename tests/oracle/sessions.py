"""
Random sessions through the public names: what each call comes to, what is recorded, what a host is answered.

What is drawn never depends on what the library says: after a difference all later calls are still the same calls.
"""

import asyncio
import itertools
import json
import os
import re
import tempfile

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from guardrails import Envelope, JsonLines, MemoryStore, SqliteStore

from . import calls
from .calls import ARGUMENTS, DRAWN, NAMES, Call, Ending, asearch, book, counting, ending_of, policy_of
from .frozen import Entry, digest, plain, short


SESSIONS, STATES, LENGTH = 60, 24, 11
MEANINGS, TEXTS, RECORDED, CHARGED, DECIDED, LEARNED = (
    DRAWN[name] for name in ("meanings", "texts", "recorded", "charged", "decided", "learned")
)


def meaning(text: str) -> dict[str, Any]:
    """
    What an envelope, as the JSON that the model reads, means; its wording left out.
    """
    try:
        said = json.loads(text)
    except ValueError:
        said = text
    if not isinstance(said, dict):
        return {"value": digest(text)}
    found = {key: said[key] for key in MEANINGS if key in said}
    value = {key: each for key, each in said.items() if key not in MEANINGS + TEXTS}
    if value:
        found["value"] = digest(json.dumps(value, sort_keys=True))
    if hint := said.get("next_action_hint") or said.get("user_facing_hint"):
        found["hint"] = short(plain(f"{hint}"), 30)
    if isinstance(said.get("errors"), list):
        found["errors"] = sorted(str(each.get("field")) for each in said["errors"] if isinstance(each, dict))
    return found


def enveloped(at: str, envelope: Envelope | BaseException, **decided: Any) -> Entry:
    """
    The entry of one envelope, or of what was raised in its place.
    """
    if isinstance(envelope, BaseException):
        return Entry(at, "raised", {**decided, "raised": type(envelope).__name__}, None, short(f"{envelope}", 120))
    text = envelope.to_json()
    refused = envelope.status in ("denied", "duplicate_call_blocked", "limit_reached", "validation_error")
    group = envelope.code or envelope.error_type or envelope.status
    decided |= {"refused": refused, "code": envelope.code}
    wording = envelope.message or envelope.error_message or ""
    return Entry(at, group, {k: v for k, v in decided.items() if v}, meaning(text), f"{digest(text)} {wording[:40]}")


def numbered(text: str, runs: dict[str, str]) -> str:
    """
    *text* with numbers in place of the ids that are drawn anew each time, which *runs* remembers.
    """
    return re.sub(r'(?<=")([0-9a-f]{16}|[0-9a-f]{8}-\d+)(?=")', lambda m: runs.setdefault(m[0], f"id{len(runs)}"), text)


class Clock:
    """
    Seconds since 1970, which pass only where a session lets them.
    """

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class World:
    """
    What session *number* is made of. *reopened*: its store is closed and opened again between passages.
    """

    def __init__(self, number: int, seed: str, *, reopened: bool | None = None) -> None:
        self.rng = Random(f"{seed} {number}")
        self.clock = Clock()
        self.entries: list[Entry] = []
        self.policy = policy_of(number, self.rng)
        self.file = reopened if reopened is not None else number % 2 == 1
        self.reopened = bool(reopened)
        self.awaits = number % 5 > 2
        self.store: Any = self._store()
        kept: dict[str, Any] = {"results": ("full", "hash", "off")[number % 3]}
        redact = ("arguments.password", "**.api_key") if number % 4 == 0 else ()
        self.sink = JsonLines("records.jsonl", redact=redact, **kept)
        self.count = itertools.count()
        self.name = f"s{number:02}"
        self.sessions: dict[str, Any] = {}
        self.at = ""

    def _store(self) -> Any:
        return SqliteStore("states.db", clock=self.clock) if self.file else MemoryStore()

    def reopen(self) -> None:
        """
        Let go of the store's file and of all sessions; what is known is what was packed.
        """
        if self.reopened:
            self.store.close()
            self.store = self._store()
            self.sessions.clear()

    def go_on(self) -> None:
        """
        More of all limits most of the time, so that there is something to tell.
        """
        if self.rng.random() < 0.8:
            amounts: dict[str, Any] = {"max_calls": 20, "max_turns": 9, "max_cost_usd": 0.9, "max_tokens": 5_000}
            amounts["max_elapsed"] = 9_000
            for scope in (None, *self.policy.scopes):
                for more in ({}, *({name: amount} for name, amount in amounts.items())):
                    with suppress(Exception):  # there is no such limit
                        self.session().extend(scope=scope, **more)

    def session(self, name: str = "main", user: str = "u1") -> Any:
        """
        The session *name* of a *user*.
        """
        if name not in self.sessions:
            scopes = {scope: user if scope == "user" else "acme" for scope in self.policy.scopes}
            options: dict[str, Any] = {"records": self.sink, "clock": self.clock, "scopes": scopes}
            self.sessions[name] = self.policy.session(name, store=self.store, **options)
        return self.sessions[name]

    def say(self, what: str, function: Callable[[], Any]) -> Any:
        """
        Add what *function* returns, or raises.
        """
        at = f"{self.name}/{self.at}{next(self.count):03} {what}"
        try:
            said = function()
        except (Exception, asyncio.CancelledError, KeyboardInterrupt) as error:
            self.entries.append(replace(enveloped(at, error), group=what))
            return None
        if isinstance(said, Entry):
            self.entries.append(replace(said, at=at))
        elif said is not None and what not in ("request", "begin_turn"):
            told = json.dumps(said, default=str, sort_keys=True)
            kind = what.partition(" ")[0]
            decided, known = said if kind in DECIDED else None, said if kind == "progress" else None
            self.entries.append(Entry(at, what, decided, known, short(told)))
        return said

    def call(self, session: Any, tool: str, arguments: Any, ending: Ending, *, id: str | None = None) -> None:
        """
        One call, in the way of this world.
        """
        number, ran = next(self.count), 0
        taken = self.rng.choice((0.0, 0.0, 0.02, 3.0))

        def execute(*_: Any) -> Any:
            nonlocal ran
            ran += 1
            self.clock.now += taken
            return ending()

        async def aexecute(*_: Any) -> Any:
            await asyncio.sleep(0)
            return execute()

        given = f"call_{number}" if id is None else id
        at, before = f"{self.name}/{self.at}{number:03} {tool}", session.ledger.cost_usd
        try:
            if self.awaits:
                envelope = asyncio.run(session.acall(tool, arguments, aexecute, id=given))
            else:
                envelope = session.call(tool, arguments, execute, id=given)
        except (Exception, asyncio.CancelledError, KeyboardInterrupt) as error:
            self.entries.append(enveloped(at, error, ran=ran))
            return
        used, cost = session.ledger.progress.get("calls_used"), round(session.ledger.cost_usd - before, 6)
        self.entries.append(enveloped(at, envelope, ran=ran, used=used, cost=cost))

    def end(self) -> list[Entry]:
        """
        All entries, those of the records last.
        """
        self.sink.flush(60)
        self.sink.close()
        runs: dict[str, str] = {}
        file = Path("records.jsonl")
        lines = file.read_text(encoding="utf-8").strip("\n").split("\n") if file.exists() else []
        kinds: Counter[str] = Counter()
        whole = []
        for number, line in enumerate(lines):
            record = json.loads(numbered(line, runs))
            decided = {key: record[key] for key in (*RECORDED, *CHARGED) if record.get(key) not in (None, [], 0, False)}
            learned = {key: record[key] for key in LEARNED if record.get(key) not in (None, [], False)}
            group = f"record {record['event']} {record.get('code') or ''}".strip()
            kinds[record["event"]] += 1
            whole.append(json.dumps(record))
            if record["event"] in ("turn", "request", "extend"):  # many, and they say little
                continue
            at = f"{self.name}/record {number:03}"
            layers = digest(json.dumps(decided, sort_keys=True)), digest(json.dumps(learned), 4), digest(whole[-1], 6)
            self.entries.append(Entry(at, group, *layers))
        self.entries.append(Entry(f"{self.name}/records", "records", kinds, None, digest("\n".join(whole))))
        return self.entries


# Passages: what models do with tools


def turn(world: World, session: Any) -> None:
    rng = world.rng
    world.clock.now += rng.choice((0.0, 0.1, 1.5, 1.5, 20.0))
    kind, usage, cost = rng.random(), rng.randrange(400), rng.choice((None, 0.01, "0.002", 0.15))
    model = rng.choice(("priced-small", "priced-large", "mystery"))
    if kind < 0.3:
        world.say("request", session.request)
    if kind < 0.7:
        world.say("begin_turn", partial(session.begin_turn, rng.choice((None, 1, 2))))
    elif kind < 0.9:

        def charge() -> Any:
            priced = session.charge(model=model, usage={"prompt_tokens": usage, "completion_tokens": 20}, cost_usd=cost)
            return [str(priced.cost), priced.by]

        world.say("charge", charge)


def series(made: Callable[[Random], Iterable[Call]]) -> Callable[["World", Any], None]:
    """
    A passage of calls one after the other, each with a turn after it.
    """

    def passage(world: World, session: Any) -> None:
        for tool, arguments, ending in list(made(world.rng)):
            world.call(session, tool, arguments, ending)
            turn(world, session)

    passage.__name__ = made.__name__
    return passage


mixed, repeat = series(calls.mixed), series(calls.repeat)


def parallel(world: World, session: Any) -> None:
    """
    Calls of one response, all in flight at once. They begin and end in their order, which is no matter of threads.
    """
    made = [(world.rng.choice(NAMES), {"n": world.rng.randrange(3)}, ending_of(world.rng)) for _ in range(4)]
    turn(world, session)
    ran: list[int] = []

    async def run() -> Any:
        begun, over = ([asyncio.Event() for _ in range(5)] for _ in range(2))
        begun[-1].set()
        over[-1].set()

        async def one(n: int, tool: str, arguments: Any, ending: Ending) -> Any:
            async def execute(*_: Any) -> Any:
                ran.append(n)
                begun[n].set()
                await begun[n + 1].wait()
                await over[n - 1].wait()
                return ending()

            await begun[n - 1].wait()
            try:
                return await session.acall(tool, arguments, execute, id=f"call_p{n}")
            finally:
                begun[n].set()
                over[n].set()

        return await asyncio.gather(*(one(n, *each) for n, each in enumerate(made)), return_exceptions=True)

    for n, envelope in enumerate(asyncio.run(run())):
        at = f"{world.name}/{world.at}{next(world.count):03} parallel {n}"
        world.entries.append(enveloped(at, envelope, ran=ran.count(n)))


def adapted(world: World, session: Any) -> None:
    """
    Decided here, run elsewhere: completed, completed twice, too late, or never.
    """
    rng = world.rng
    for n in range(rng.randrange(1, 4)):
        tool, arguments = rng.choice(NAMES), rng.choice(ARGUMENTS) if rng.random() < 0.5 else {"n": n}
        waits, ends, given = rng.choice((0.0, 1.0, 60.0, 700.0)), rng.choice((0, 1, 1, 2)), f"open_{next(world.count)}"
        result = rng.choice(({"late": n}, TimeoutError("slow")))
        made: list[Any] = []

        def decide(made: list[Any] = made, asked: Any = (tool, arguments), own: str = given) -> Any:
            made.append(session.decide(*asked, id=own))
            return [made[0].allowed, made[0].code]

        world.say(f"decide {tool}", decide)
        world.clock.now += waits
        for _ in range(ends if made else 0):
            world.say("complete", partial(_returned, partial(session.complete, made[0], result)))


def approved(world: World, session: Any) -> None:
    """
    A call that waits for a person, and what that person says.
    """
    tool, answer = world.rng.choice(("pay", "delete_row")), world.rng.choice(("approve", "refuse", "late"))
    arguments, own = {"usd": next(world.count)}, f"call_{world.rng.randrange(10**6)}"
    world.call(session, tool, arguments, counting(1), id=own)
    world.say("pending", lambda: [[one.id, one.tool, one.reason] for one in session.pending()])
    if answer == "late":
        world.clock.now += 5000
    refuse, approve = partial(session.refuse, own, reason="too much"), partial(session.approve, own)
    world.say(answer, refuse if answer == "refuse" else approve)
    for _ in range(2):
        world.call(session, tool, arguments, counting(1), id=own)


def child(world: World, session: Any) -> None:
    """
    A sub-agent with amounts of its own, which has one of its own, and ends.
    """
    rng, name = world.rng, f"kid_{next(world.count)}"
    shares: list[dict[str, Any]] = [{}, {"max_calls": 3}, {"max_calls": 2, "max_cost_usd": 0.1}, {"max_turns": 2}]
    amounts = rng.choice(shares)
    held: list[Any] = []
    world.say("child", lambda: held.append(session.child(name, **amounts)))
    if not held:
        return
    kid = held[0]
    rng.choice((mixed, repeat, adapted))(world, kid)
    world.say("grandchild", lambda: held.append(kid.child("grandkid")))
    for one in held[1:]:
        mixed(world, one)
        world.say("close", one.close)
    world.say("close", kid.close)
    world.call(kid, "read_page", {"n": 1}, counting(1))


def sibling(world: World, session: Any) -> None:
    """
    Another session of the same user, or of another.
    """
    world.rng.choice((mixed, repeat))(world, world.session(*world.rng.choice((("sibling", "u1"), ("stranger", "u2")))))


def wrapped(world: World, session: Any) -> None:
    """
    Functions as tools: JSON, envelope or value, sync or async, with a parameter that no model sees.
    """
    form: Any = world.rng.choice(("json", "envelope", "value"))
    nights = world.rng.choice((1, 3, 9))
    order = session.wrap(partial(book, owner="ada"), returns=form, name=f"book_{form}")
    search = session.wrap(asearch, returns="json", name="asearch")
    for given in ({"hotel": "h_1", "nights": nights}, {"hotel": "h_1", "nights": nights}, {"nights": "many"}):
        world.say("wrapped", partial(_returned, partial(order, **given)))
    for page in (1, 2, 4):
        world.say("wrapped async", partial(_returned, partial(_awaited, search, page)))


def _awaited(search: Any, page: int) -> Any:
    return asyncio.run(search("hotels", page=page))


def _returned(function: Callable[[], Any]) -> Entry:
    """
    What a function as a tool returns: an envelope, its JSON, or a value.
    """
    said = function()
    if isinstance(said, Envelope):
        return enveloped("", said)
    return Entry("", "wrapped", None, meaning(f"{said}"), short(f"{said}"))


def stopped(world: World, session: Any) -> None:
    def ending() -> Any:
        raise asyncio.CancelledError if world.awaits else KeyboardInterrupt

    world.call(session, "update_row", {"n": 1}, ending)
    world.call(session, "update_row", {"n": 1}, counting(1))


def jump(world: World, session: Any) -> None:
    world.clock.now += world.rng.choice((0.05, 0.4, 2.0, 7.0, 65.0, 700.0, 4_000.0, 700_000.0))


def extend(world: World, session: Any) -> None:
    amounts: dict[str, Any] = {"max_calls": 9, "max_turns": 9, "max_cost_usd": 0.9, "max_elapsed": 9e5}
    amounts["max_tokens"] = 9000
    for amount in world.rng.sample([*({name: most} for name, most in amounts.items()), {}], 3):
        world.say("extend", partial(session.extend, **amount))
    if world.policy.scopes:
        world.say("extend", partial(session.extend, scope="user", max_calls=9))
    look(world, session)


def look(world: World, session: Any) -> None:
    """
    What a host asks of a session.
    """
    requested = world.rng.choice((None, "auto", "required"))
    world.say("exhausted_by", lambda: [session.exhausted, session.exhausted is not None])
    world.say("tool_choice", lambda: [session.tool_choice(requested)])
    world.say("cost", lambda: [round(session.ledger.cost_usd, 6), session.ledger.unpriced])
    world.say("limit_message", lambda: session.ledger.limit_message)
    world.say("progress", lambda: dict(session.ledger.progress))
    world.say("digest", lambda: f"{digest(session.digest())} of {len(session.digest())} characters")


def forget(world: World, session: Any) -> None:
    world.say("forget", session.ledger.forget)
    mixed(world, session)


PASSAGES: Final[dict[Callable[[World, Any], None], int]] = (
    {series(made): often for made, often in calls.SERIES.items()}
    | {parallel: 3, adapted: 4, approved: 4, child: 3, sibling: 3, wrapped: 2, stopped: 1, jump: 3, extend: 5}
    | {look: 2, forget: 1}
)


def lived(number: int, seed: str, *, reopened: bool | None = None) -> list[Entry]:
    """
    The entries of session *number*.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("outside").symlink_to("/")
            world = World(number, seed, reopened=reopened)
            for at, passage in enumerate(world.rng.choices(list(PASSAGES), list(PASSAGES.values()), k=LENGTH)):
                # Each has numbers of its own, so that one that is cut short shifts no other.
                world.rng, world.at = Random(f"{seed} {number} {at}"), f"{at:02}-{passage.__name__}/"
                passage(world, world.session())
                world.reopen()
                world.go_on()
            look(world, world.session())
            return world.end()
        finally:
            os.chdir("/")


def sessions() -> Iterator[Entry]:
    """
    Sixty of them.
    """
    for number in range(SESSIONS):
        yield from lived(number, "1")


def states() -> Iterator[Entry]:
    """
    Sessions whose state is packed and read again between passages go on as those that are held in memory.
    """
    for number in range(STATES):
        ways = {}
        for reopened in (False, True):
            entries = [entry for entry in lived(number, "2", reopened=reopened) if "/record" not in entry.at]
            digests = [f"{entry.text}" for entry in entries if entry.group == "digest"]
            ways[reopened] = [f"{entry.at} {entry.decision}" for entry in entries], digests
        (held, digests), (read, again) = ways.values()
        differ = [f"{a} | {b}" for a, b in zip(held + digests, read + again, strict=False) if a != b]
        decided = {"calls": len(read), "differ": differ[:1], "lines": digest("\n".join(read))}
        yield Entry(f"s{number:02}", "packed and read", decided, None, digest("\n".join(again)))
