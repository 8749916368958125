"""
Conversations that are kept (B4): as they were sent and received, through kill -9, by several processes; half-finished turns
are answered when one is taken up again.
"""

import itertools
import json
import re
import signal
import sqlite3
import subprocess
import sys

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, Duplicates, MemorySink, Policy, Tool
from guardrails.agent.conversations import INTERRUPTED, ConversationError, Conversations, Repaired
from guardrails.core.values.errors import StoreError
from guardrails.errors import SessionError
from guardrails.integrations.openai.wires import WIRES
from tests.children import child
from tests.replaying import replay
from tests.tables import table


USER = {"role": "user", "content": "find a hotel in Shibuya"}


def called(*ids: str, wire: str = "chat") -> list[dict[str, Any]]:
    search = {"name": "search", "arguments": '{"q": 1}'}
    if wire == "responses":
        return [{"type": "function_call", "call_id": i, **search} for i in ids]
    return [{"role": "assistant", "tool_calls": [{"id": i, "type": "function", "function": search} for i in ids]}]


def result(id: str, wire: str = "chat") -> dict[str, Any]:
    chat = {"role": "tool", "tool_call_id": id, "content": "found"}
    return chat if wire == "chat" else {"type": "function_call_output", "call_id": id, "output": "found"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


@pytest.fixture
def kept(path: Path) -> Iterator[Conversations]:
    with Conversations(path) as made:
        yield made


@table("wire", ["chat", "responses"])
def test_b4_a_conversation_comes_back_as_it_was(path: Path, wire: Any) -> None:
    items = [USER, *called("a", wire=wire), result("a", wire), {"type": "reasoning", "encrypted_content": "gAAA="}]
    with Conversations(path) as kept:
        kept.start(wire, wire=wire, settings={"model": "m"}).extend(items)
    with Conversations(path) as kept:
        chat = kept.resume(wire)
        assert (chat, chat.settings, chat.wire) == (items, {"model": "m"}, wire)
        chat.append(USER)
        assert list(kept.resume(wire)) == [*items, USER]


JSON = st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(st.characters()) | st.lists(st.integers())


@settings(max_examples=60, deadline=None)
@given(items=st.lists(st.dictionaries(st.text(st.characters()), JSON, max_size=3), max_size=5))
def test_whatever_is_json_comes_back_equal(items: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    with Conversations(tmp_path_factory.getbasetemp() / "laws.db") as kept:
        chat = kept.start()
        chat.extend(items)
        assert kept.resume(chat.id) == items


def test_an_object_of_the_client_is_kept_as_sent_and_what_is_no_json_object_is_refused(kept: Conversations) -> None:
    from openai.types.chat import ChatCompletionMessage

    sent = {"role": "assistant", "content": "hi", "thought_signature": "x"}
    chat = kept.start("s", messages=[ChatCompletionMessage.model_validate(sent)])
    for item in ("", [1], 7, None, {"a": object()}, {"a": {1, 2}}):
        with pytest.raises(ConversationError):
            chat.extend([USER, item])
    with pytest.raises(ConversationError):
        kept.start("t", settings={"a": object()})
    assert chat == [sent] == kept.resume("s")
    assert [one.id for one in kept.listed()] == ["s"]


def test_what_was_said_stays(kept: Conversations) -> None:
    chat = kept.start("s", messages=[USER, *called("a")])
    for name in ["pop", "clear", "sort", "reverse", "remove", "insert", "__setitem__", "__delitem__", "__imul__"]:
        with pytest.raises(ConversationError, match="appended only"):
            getattr(chat, name)(0)
    chat += [result("a"), USER]
    assert chat == [USER, *called("a"), result("a"), USER] == kept.resume("s")


def test_conversations_of_0_2_0_are_taken_over(path: Path) -> None:
    Conversations(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(Path(__file__).with_name("0.2.0.sql").read_text())
    for _ in range(2):
        with Conversations(path) as kept:
            assert kept.listed() == [("s", "responses", 2, 5, 9, {"model": "m"})]
            assert kept.resume("s") == [{"role": "user", "n": 1.0}, {}]


def test_ids_are_opaque_unless_given_and_a_given_one_is_checked(kept: Conversations) -> None:
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in {kept.start().id for _ in range(4)})
    for bad, use in itertools.product(("", "../x", "a/b", "x\0", "x" * 257), (kept.start, kept.resume)):
        with pytest.raises(SessionError):
            use(bad)
    kept.start("trip-12")
    with pytest.raises(ConversationError, match="already"):
        kept.start("trip-12")
    with pytest.raises(ConversationError, match=r"the latest are: .*`trip-12`"):
        kept.resume("trip-1")


def test_all_are_listed_the_latest_first_until_they_are_forgotten_with_their_session(path: Path, clock: Any) -> None:
    with Conversations(path, clock=clock) as kept:
        first = kept.start("first", settings={"model": "m"})
        clock.now += 10
        kept.start("second", wire="responses", messages=[USER])
        clock.now += 10
        first.append(USER)
        told = [(s.id, s.wire, s.messages, s.last_ms - s.made_ms, dict(s.settings)) for s in kept.listed()]
        assert told == [("first", "chat", 1, 20_000, {"model": "m"}), ("second", "responses", 1, 0, {})]
        Policy([Budget(max_calls=1)]).session("first", store=kept.store).call("t", {}, lambda *_: 1)
        for name in ("first", "second"):
            kept.forget(name)
        assert (kept.listed(), len(kept.store), kept.start("first")) == ([], 0, [])
        assert all(b"Shibuya" not in file.read_bytes() for file in path.parent.iterdir())


# Half-finished turns


@table("wire", ["chat", "responses"])
def test_b4_each_unanswered_call_is_told_that_it_may_or_may_not_have_run(wire: Any, kept: Conversations) -> None:
    # Servers use ids again.
    begun = [*called("a", wire=wire), result("a", wire), *called("a", "b", "c", wire=wire), result("b", wire)]
    messages = kept.start(wire=wire, messages=[USER, *begun])
    session = Policy([Budget(max_calls=9)]).session("s")
    assert messages.repair(session) == [Repaired("a", "search", False), Repaired("c", "search", False)]
    assert [WIRES[wire].answers(message) for message in messages[-2:]] == ["a", "c"]
    told, whole = json.loads(messages[-2].get("content") or messages[-2]["output"]), list(messages)
    assert (told["status"], told["error_type"], told["error_message"]) == ("error", "cancelled", INTERRUPTED)
    assert ("before you call it again" in told["next_action_hint"], told.get("retryable")) in (
        (True, None),
        (True, False),
    )
    assert (messages.repair(session), messages, session.ledger.progress["calls_used"]) == ([], whole, 0)


def test_an_admission_that_was_left_open_is_settled_once_and_replays(clock: Any, kept: Conversations) -> None:
    policy = Policy([Budget(max_calls=5), Duplicates()])
    records = MemorySink()
    session = policy.session("s", records=records, clock=clock)
    # What a killed process leaves: decided and claimed, never completed.
    session.calls.decide("search", '{"q": 1}', "a", claims=True)
    assert session.decide("search", '{"q": 1}', id="b").code == "call.in_flight"
    messages = kept.start(messages=called("a"))
    assert messages.repair(session) == [Repaired("a", "search", True)]
    assert json.loads(messages[-1]["content"])["error_message"] == INTERRUPTED
    # The model may find it worth another try: it is no duplicate, but it is another call.
    assert session.call("search", '{"q": 1}', lambda *_: "found", id="c").ok
    assert session.ledger.progress["calls_used"] == 2
    session.close()
    assert [replayed.same for replayed in replay(policy.chain, records.records)] == [True] * 3


def test_a_call_that_is_not_to_be_made_twice_is_uncertain_after_a_kill(clock: Any, kept: Conversations) -> None:
    session = Policy(tools=[Tool(name="search", idempotent=False)]).session("s", clock=clock)
    session.calls.decide("search", '{"q": 1}', "a", claims=True)
    assert kept.start(messages=called("a")).repair(session) == [Repaired("a", "search", True)]
    assert session.call("search", '{"q": 1}', lambda *_: "ran twice", id="b").code == "call.uncertain"


def test_what_sub_agents_held_when_they_were_killed_comes_back_but_for_what_they_used(kept: Conversations) -> None:
    session = Policy([Budget(max_calls=20)]).session("s")
    child = session.child("agent-1", max_calls=10)
    grandchild = child.child("agent-1", max_calls=5)
    for one in (child, grandchild):
        assert one.call("search", {}, lambda *_: 1).ok
    grandchild.calls.decide("search", {"open": True}, "x", claims=True)
    assert session.ledger.progress == {"calls_used": 0, "calls_left": 10}
    # None of them is closed: the process is gone.
    for _ in range(2):
        assert kept.start().repair(session) == []
        assert session.ledger.progress == {"calls_used": 3, "calls_left": 17}


# Faults


def test_a_file_that_cannot_be_used_and_what_is_damaged_in_it_are_named(tmp_path: Path) -> None:
    folder, foreign, broken, path = (tmp_path / f"{name} kept.db" for name in ("folder", "foreign", "broken", "own"))
    folder.mkdir()
    with closing(sqlite3.connect(foreign)) as database:
        database.execute("CREATE TABLE notes (text)")
    broken.write_bytes(b"no database" * 1000)
    for unfit in (folder, foreign, broken):
        with pytest.raises((StoreError, ConversationError), match=r"kept\.db"):
            Conversations(unfit)
    with Conversations(path) as kept, closing(sqlite3.connect(path)) as database:
        for n, damage in ((1, "torn"), (0, "{}"), (0, "[]")):
            chat = kept.start(messages=[USER])
            database.execute("UPDATE items SET item = ? WHERE name = ? AND n = ?", (damage, chat.id, n))
            database.commit()
            with pytest.raises(ConversationError, match=rf"the conversation `{chat.id}` in .* is damaged"):
                kept.resume(chat.id)


WRITER = Path(__file__).with_name("writer.py.txt").read_text()


@pytest.mark.system
def test_b4_kill_9_loses_no_message_that_was_kept(path: Path) -> None:
    with child(sys.executable, "-c", WRITER, str(path), stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(25)]
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.readlines()
    confirmed = int([line for line in said if line.endswith("\n")][-1])
    with Conversations(path) as kept:
        chat = kept.resume("s")
        assert confirmed <= len(chat) <= confirmed + 1
        assert [message["content"].split()[1] for message in chat] == [str(n) for n in range(len(chat))]


def test_what_another_process_has_gone_on_with_is_refused_and_its_messages_stay(path: Path) -> None:
    with Conversations(path) as kept, Conversations(path) as others:
        chat = kept.start("s", messages=[USER])
        others.resume("s").append(USER)
        with pytest.raises(ConversationError, match="has 2 messages by now, not 1: another process goes on with it"):
            chat.append(USER)
        assert (len(chat), len(kept.resume("s"))) == (1, 2)


def test_a_full_disk_keeps_what_was_kept(kept: Conversations) -> None:
    chat = kept.start("s", messages=[USER])
    ((pages,),) = kept._database.execute("PRAGMA page_count")
    kept._database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreError, match="disk is full"):
        chat.append({"role": "tool", "content": "x" * 1_000_000})
    chat.append(USER)
    assert chat == [USER, USER]
