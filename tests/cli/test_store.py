"""
`guardrails store`: what a store keeps is listed, shown and dropped.
"""

import json
import re
import shutil
import sqlite3
import time

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, SqliteStore
from guardrails.agent.conversations import Conversations
from guardrails.core.guards.approve import Approve
from guardrails.core.packing import VERSION
from tests.cli.command import guardrails
from tests.conftest import FakeClock


KEPT = Path(__file__).parents[1] / "golden/0.2.0"
DAY = 86_400


@pytest.fixture
def path(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    Of a store with two sessions, a child and a scope, the latter of a day before.
    """
    made = tmp_path / "state.db"
    monkeypatch.setattr("guardrails.cli.store._now", lambda: round(clock.now * 1000))
    policy = Policy([Budget(max_calls=2)], scopes={"user": [Budget(max_calls=5)]})
    with SqliteStore(made, clock=clock) as store:
        clock.now -= DAY
        for name in ("trip-1", "trip-2"):
            session = policy.session(name, store=store, clock=clock, scopes={"user": "u1"})
            session.call("search", {"q": name}, lambda *_: "found")
        clock.now += DAY
        session.child("pay", max_calls=1).call("pay", {}, lambda *_: "paid")
    return made


run = partial(guardrails, "store")


def listed(path: Path, *arguments: str) -> list[str]:
    return [one["key"] for one in json.loads(run("ls", str(path), "--json", *arguments).stdout)["entries"]]


def test_what_is_kept_is_listed_the_latest_changed_first_or_a_part_of_it(path: Path) -> None:
    said = run("ls", str(path))
    lines = said.stdout.splitlines()
    assert said.exit_code == 0
    assert lines[0].split() == ["key", "kind", "idle_s", "calls", "cost_usd", "tokens", "open", "ended_by"]
    assert lines[-1].split()[:4] == ["trip-1", "session", "86400", "1"]
    kinds = {"/user/u1": "scope", "trip-1": "session", "trip-2": "session", "trip-2/pay": "child"}
    assert {line.split()[0]: line.split()[1] for line in lines[1:]} == kinds
    assert said.stderr.strip() == "4 states"
    told = json.loads(run("ls", str(path), "--json").stdout)
    assert (told["states"], told["shown"], told["store"]) == (4, 4, str(path))
    (scope,) = (one for one in told["entries"] if one["key"] == "/user/u1")
    assert (scope["calls"], scope["version"], scope["idle_s"], scope["unreadable"]) == (3, VERSION, 0, None)

    assert sorted(listed(path, "--prefix", "trip-2")) == ["trip-2", "trip-2/pay"]
    assert [listed(path, "--idle", time) for time in ("12h", "2d")] == [["trip-1"], []]
    assert [len(listed(path, "--limit", limit)) for limit in "20"] == [2, 4]
    assert run("ls", str(path), "--limit", "2").stderr.strip() == "2 states, 4 in all"


def test_what_cannot_be_read_is_listed_with_its_version_and_shown_with_what_to_do(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE states SET state = ? WHERE key = 'trip-1'", (bytes([VERSION + 2]) + b"...",))
        database.execute("UPDATE states SET state = 'text' WHERE key = 'trip-2'")
    lines = {line.split()[0]: line for line in run("ls", str(path)).stdout.splitlines()}
    assert lines["trip-1"].split() == ["trip-1", "session", "86400"]
    shown = run("show", str(path), "trip-1")
    assert shown.exit_code == 1
    reason = f"of version {VERSION + 2}, and this version of the library reads {VERSION}: use the one that"
    assert reason in " ".join(shown.stdout.split())
    assert run("show", str(path), "trip-2", "--json").exit_code == 1
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        packed = (KEPT / "state.bin").read_bytes()
        database.execute("UPDATE states SET state = ? WHERE key = 'trip-1'", (packed,))
    said = json.loads(run("show", str(path), "trip-1", "--json").stdout)
    assert (said["version"], bool(said["window"])) == (packed[0], True), "0.2.0 packed it"
    assert run("forget", str(path), "trip-2", "--yes").exit_code == 0


def test_arguments_that_wait_are_not_shown_and_no_name_steers_the_terminal(path: Path, clock: FakeClock) -> None:
    with SqliteStore(path, clock=clock) as store:
        session = Policy([Approve(tools=("send",))]).session("asked", store=store, clock=clock)
        session.call("send", {"password": "hunter2"}, lambda *_: "sent")
        Policy([Budget(max_calls=2)]).session("odd", store=store, clock=clock).call("\x1b[2Jx", {}, lambda *_: 1)
    for said in (run("show", str(path), "asked"), run("show", str(path), "asked", "--json"), run("ls", str(path))):
        assert said.exit_code == 0
        assert "hunter2" not in said.stdout
    assert "\x1b" not in run("show", str(path), "odd").stdout


def test_what_is_forgotten_starts_afresh_and_nothing_is_dropped_unless_that_is_said(path: Path) -> None:
    for command in (("forget", str(path), "trip-1"), ("prune", str(path), "--idle", "1h")):
        said = run(*command)
        assert (said.exit_code, len(listed(path))) == (2, 4)
        assert re.search("this would .* add --yes to do it", said.stderr)
    said = run("forget", str(path), "trip-2", "trip-2/pay", "trip-2", "--yes", "--json")
    assert json.loads(said.stdout) == {"forgotten": 2, "keys": ["trip-2", "trip-2/pay"]}
    assert run("forget", str(path), "trip-1", "trip-9", "--yes").exit_code == 2
    assert sorted(listed(path)) == ["/user/u1", "trip-1"]


def test_a_conversation_is_forgotten_with_its_messages(tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / "agent.db", tmp_path))
    assert "trip-42" in listed(path)
    assert "this would forget 2 states of" in run("forget", str(path), "trip-42").stderr
    forgotten = run("forget", str(path), "trip-42", "--yes").stdout.split()
    assert forgotten == ["field", "value", "forgotten", "2", "keys", "trip-42", "trip-42/pay"]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM items").fetchone() == (0,)
    assert "trip-42" not in listed(path)
    with Conversations(path) as kept:
        kept.start("talk", messages=[{"role": "user", "content": "hello"}])
        assert run("forget", str(path), "talk", "--yes").exit_code == 0
        assert kept.listed() == []


def test_what_was_idle_is_dropped_by_prefix_and_scopes_only_if_that_is_said(path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("guardrails.cli.store._now", lambda: round(time.time() * 1000))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        # By the clock of this machine, which `prune` goes by.
        database.execute("UPDATE states SET at_ms = ?", (round((time.time() - 10 * DAY) * 1000),))
    with SqliteStore(path) as store:
        Policy([Budget(max_calls=2)]).session("young", store=store).call("t", {}, lambda *_: 1)
    said = run("prune", str(path), "--idle", "9d", "--prefix", "trip-2", "--yes", "--json")
    assert json.loads(said.stdout) == {"dropped": 2}
    assert sorted(listed(path)) == ["/user/u1", "trip-1", "young"]
    for more in ([], ["--scopes"]):
        assert run("prune", str(path), "--idle", "9d", "--yes", *more).stdout == "field    value\ndropped  1\n"
    assert listed(path) == ["young"]
