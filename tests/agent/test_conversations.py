"""
Conversations that are kept (B4): as they were sent and received, through kill -9, by several processes.
"""

import signal
import sqlite3
import subprocess
import sys

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Budget, Policy, SessionError
from guardrails.agent.conversations import ConversationError, Conversations
from guardrails.core.values.errors import StoreError
from tests.children import child
from tests.tables import table


USER = {"role": "user", "content": "find a hotel in Shibuya"}
CALLS = {
    "role": "assistant",
    "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "search", "arguments": '{"q": 1.0}'}}],
}
RESULT = {"role": "tool", "tool_call_id": "call_0", "content": "none"}
ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA="},
    {"type": "function_call", "id": "fc_1", "call_id": "call_0", "name": "search", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_0", "output": "none"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.db"


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("items", [[USER, CALLS, RESULT], ITEMS], ids=["chat", "responses"])
def test_b4_a_conversation_comes_back_as_it_was(path: Path, items: list[dict[str, Any]]) -> None:
    with Conversations(path) as kept:
        chat = kept.start("trip", settings={"model": "m"})
        for item in items:
            chat.append(item)
    with Conversations(path) as kept:
        chat = kept.resume("trip")
        assert chat == items
        assert chat.settings == {"model": "m"}
        chat.append(USER)
    with Conversations(path) as kept:
        chat = kept.resume("trip")
        assert chat == [*items, USER]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(items=st.lists(st.dictionaries(st.text(st.characters()), JSON, max_size=3), max_size=5))
def test_whatever_is_json_comes_back_equal(
    items: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "laws.db"
    with Conversations(path) as kept:
        chat = kept.start()
        chat.extend(items)
        again = kept.resume(chat.id)
        assert again == items


def test_an_object_of_the_client_is_kept_as_the_server_sent_it(path: Path) -> None:
    from openai.types.chat import ChatCompletionMessage

    sent = {"role": "assistant", "content": "hi", "thought_signature": "x"}
    with Conversations(path) as kept:
        chat = kept.start("s")
        chat.append(ChatCompletionMessage.model_validate(sent))
        assert chat == [sent]


@pytest.mark.parametrize("item", ["", [1], 7, None, {"a": object()}, {"a": {1, 2}}])
def test_what_is_no_json_object_is_refused_and_nothing_is_kept(path: Path, item: Any) -> None:
    with Conversations(path) as kept:
        chat = kept.start("s")
        with pytest.raises(ConversationError):
            chat.extend([USER, item])
        assert chat == [] == kept.resume("s")


def test_what_was_said_stays(path: Path) -> None:
    with Conversations(path) as kept:
        chat = kept.start("s", messages=[USER, CALLS])
        changes: list[Any] = [
            chat.pop,
            chat.clear,
            chat.sort,
            chat.reverse,
            partial(chat.remove, USER),
            partial(chat.insert, 2, RESULT),
            partial(chat.__setitem__, 0, RESULT),
            partial(chat.__delitem__, 0),
            partial(chat.__imul__, 2),
        ]
        for change in changes:
            with pytest.raises(ConversationError, match="appended only"):
                change()
        chat += [RESULT, USER]
        assert chat == [USER, CALLS, RESULT, USER] == kept.resume("s")


def test_conversations_of_0_2_0_are_taken_over(path: Path) -> None:
    Conversations(path).close()
    database = sqlite3.connect(path)
    database.executescript("""
        DROP TABLE kept;
        CREATE TABLE conversation_tables (version INTEGER NOT NULL);
        CREATE TABLE conversations (id INTEGER PRIMARY KEY, name TEXT, wire TEXT, made_ms INTEGER, settings TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation INTEGER, n INTEGER, at_ms INTEGER, item TEXT);
        INSERT INTO conversations VALUES (7, 's', 'responses', 5, '{"model": "m"}');
        INSERT INTO messages VALUES (1, 7, 1, 6, '{"role":"user","n":1.00}'), (2, 7, 2, 9, '{}');
    """)
    database.close()
    for _ in range(2):
        with Conversations(path) as kept:
            assert kept.listed() == [("s", "responses", 2, 5, 9, {"model": "m"})]
            assert kept.resume("s") == [{"role": "user", "n": 1.0}, {}]


def test_an_unknown_id_is_named_with_the_latest(path: Path) -> None:
    with Conversations(path) as kept:
        with pytest.raises(ConversationError, match=r"no conversation `trip-1` in `.*`; the latest are: none"):
            kept.resume("trip-1")
        kept.start("trip-12")
        with pytest.raises(ConversationError, match="the latest are: `trip-12`"):
            kept.resume("trip-1")


def test_ids_are_opaque_unless_given_and_a_given_one_is_checked(path: Path) -> None:
    with Conversations(path) as kept:
        ids = {kept.start().id for _ in range(20)}
        assert len(ids) == 20
        assert all(len(name) == 16 and name.isalnum() for name in ids)
        for bad in ("", "../x", "a/b", "x\0", "x" * 257):
            with pytest.raises(SessionError):
                kept.start(bad)
            with pytest.raises(SessionError):
                kept.resume(bad)
        kept.start("taken")
        with pytest.raises(ConversationError, match="already"):
            kept.start("taken")


def test_all_are_listed_the_latest_first(path: Path, clock: Any) -> None:
    with Conversations(path, clock=clock) as kept:
        first = kept.start("first", settings={"model": "m"})
        clock.now += 10
        kept.start("second", wire="responses", messages=[USER])
        clock.now += 10
        first.append(USER)
        told = [(s.id, s.wire, s.messages, s.last_ms - s.made_ms, dict(s.settings)) for s in kept.listed()]
    assert told == [("first", "chat", 1, 20_000, {"model": "m"}), ("second", "responses", 1, 0, {})]


def test_what_is_forgotten_is_gone_with_the_state_of_its_session(path: Path) -> None:
    policy = Policy([Budget(max_calls=1)])
    with Conversations(path) as kept:
        kept.start("s", messages=[USER])
        policy.session("s", store=kept.store).call("t", {}, lambda *_: 1)
        kept.forget("s")
        assert kept.listed() == []
        assert len(kept.store) == 0
        chat = kept.start("s")
        assert chat == []
        assert all(b"Shibuya" not in file.read_bytes() for file in path.parent.iterdir())


def test_budgets_go_on_where_they_stopped(path: Path) -> None:
    policy = Policy([Budget(max_calls=3)])
    for n in range(3):
        with Conversations(path) as kept:
            session = policy.session("s", store=kept.store)
            assert session.call("t", {"n": n}, lambda *_: 1).ok
    with Conversations(path) as kept:
        session = policy.session("s", store=kept.store)
        assert session.exhausted == "budget.max_calls"
        session.extend(max_calls=2)
        assert session.call("t", {"n": 9}, lambda *_: 1).ok


@pytest.mark.parametrize("what", ["a folder", "another program's", "damaged"])
def test_a_file_that_cannot_be_used_is_refused_with_a_reason(path: Path, what: str) -> None:
    if what == "a folder":
        path.mkdir()
    elif what == "another program's":
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE notes (text)")
        database.close()
    elif what == "damaged":
        path.write_bytes(b"no database" * 1000)
    with pytest.raises((StoreError, ConversationError), match=r"kept\.db"):
        Conversations(path)


# Faults


@table("damage", ["SET item = 'torn' WHERE n = 1", "SET item = '{}' WHERE n = 0"])
def test_what_is_damaged_is_named(path: Path, damage: str) -> None:
    with Conversations(path) as kept:
        kept.start("s", messages=[USER], settings={"model": "m"})
        database = sqlite3.connect(path)
        database.executescript(f"UPDATE kept {damage}")
        database.close()
        with pytest.raises(ConversationError, match=r"the conversation `s` in .* is damaged"):
            kept.resume("s")
    path.unlink()


@pytest.mark.parametrize("settings", [{"a": object()}, {"a": {1}}])
def test_settings_are_checked_before_anything_is_kept(path: Path, settings: dict[str, Any]) -> None:
    with Conversations(path) as kept:
        with pytest.raises(ConversationError):
            kept.start("s", settings=settings)
        assert kept.listed() == []


WRITER = """
import os, sys
from guardrails.agent.conversations import Conversations
kept = Conversations(sys.argv[1])
chat = kept.start("s")
n = 0
while True:
    chat.append({"role": "user", "content": f"message {n} " + "x" * 3000})
    n += 1
    print(n, flush=True)
"""


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


RESUMER = """
import sys
from guardrails.agent.conversations import Conversations
with Conversations(sys.argv[1]) as kept:
    chat = kept.resume("s")
    chat.append({"role": "user", "content": "mine"})
"""


@pytest.mark.system
def test_what_another_process_has_gone_on_with_is_refused_and_its_messages_stay(path: Path) -> None:
    with Conversations(path) as kept:
        chat = kept.start("s", messages=[USER])
        assert python(RESUMER, path).returncode == 0
        with pytest.raises(ConversationError, match="has 2 messages by now, not 1: another process goes on with it"):
            chat.append(RESULT)
        assert len(chat) == 1
        assert len(kept.resume("s")) == 2


def test_a_full_disk_keeps_what_was_kept(path: Path) -> None:
    with Conversations(path) as kept:
        chat = kept.start("s", messages=[USER])
        ((pages,),) = kept._database.execute("PRAGMA page_count")
        kept._database.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="disk is full"):
            chat.append({"role": "tool", "content": "x" * 1_000_000})
        assert chat == [USER]
        chat.append(RESULT)
