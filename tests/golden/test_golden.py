"""
What 0.2.0 wrote goes on: its records, conversations and policies. States of its sessions, and its models, are refused by name.
"""

import json
import shutil
import sqlite3

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guardrails import Conversations, Policy, PolicyError, SessionError
from guardrails.agent.conversations import ConversationError
from guardrails.core.packing import VERSION
from guardrails.core.retries.model import parse
from guardrails.core.values.errors import ModelError
from guardrails.offline.replay.exact import replay_together


HERE = Path(__file__).parent
NOW = 1_790_000_100.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "0.2.0", tmp_path / "kept"))


@pytest.fixture
def kept(folder: Path) -> Iterator[Conversations]:
    with Conversations(folder / "agent.db", clock=lambda: NOW) as conversations:
        yield conversations


def records(*paths: Path) -> list[Any]:
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def test_a_policy_file_says_what_it_said(folder: Path) -> None:
    policy = Policy.load(folder / "policy.yaml")
    said = {guard.name for guard in policy.chain.guards}
    assert said >= {"budget", "duplicates", "growth", "loops", "retryable", "truncate"}
    assert set(policy.scopes) == {"user"}
    assert (policy.chain.plan("book").timeout_ms, policy.chain.plan("search_x").cost) == (30_000, 10_000)


def test_its_records_replay_exactly(folder: Path) -> None:
    policy = Policy.load(folder / "policy.yaml")
    again = list(replay_together(policy.chain, records(folder / "records.jsonl"), scopes=policy.scopes))
    assert len(again) == 9
    assert all(one.same for one in again)


def test_a_conversation_is_resumed_and_its_session_is_refused_until_it_is_forgotten(
    folder: Path, kept: Conversations
) -> None:
    """
    A budget that cannot be read is no new budget: what to do about it is a person's decision.
    """
    assert {one.packed[0] for one in kept.store.entries()} == {6}
    policy = Policy.load(folder / "policy.yaml")
    chat = kept.resume("trip-42")
    assert len(chat) == 15
    assert chat.settings == {"policy": "policy.yaml", "model": "own-model"}

    def search(city: str) -> str | None:
        session = policy.session("trip-42", store=kept.store, clock=lambda: NOW, scopes={"user": "u1"})
        code: str | None = session.call("search_hotels", {"city": city}, lambda *_: ["h_9"]).code
        return code

    assert search("Shibuya") == "store.unreadable"
    kept.store.forget("trip-42")
    assert search("Shibuya") == "store.unreadable", "its scope is another budget"
    kept.store.forget("/user/u1")
    assert search("Shibuya") is None
    chat.append({"role": "user", "content": "go on"})
    assert len(chat) == 16
    assert {one.packed[0] for one in kept.store.entries() if one.key in ("trip-42", "/user/u1")} == {VERSION}


def test_a_newer_policy_is_refused_with_its_version_and_what_to_do(folder: Path) -> None:
    path = folder / "policy.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("version: 1", "version: 2"), encoding="utf-8")
    with pytest.raises(
        PolicyError,
        match=r"policy.yaml:1:10: version: newer than this library.*reads version 1: upgrade toolcall-guardrails, got `2`",
    ):
        Policy.load(path)


def test_a_newer_record_is_refused_with_its_version_and_what_to_do(folder: Path) -> None:
    policy = Policy.load(folder / "policy.yaml")
    newer = [record | {"schema_version": 2} for record in records(folder / "records.jsonl")]
    with pytest.raises(SessionError, match=r"of schema version 2, this library reads 1: upgrade toolcall-guardrails"):
        list(replay_together(policy.chain, newer, scopes=policy.scopes))


def test_newer_conversations_are_refused_with_their_version_and_what_to_do_and_stay_as_they_are(
    folder: Path, kept: Conversations
) -> None:
    with kept._file.writing() as execute:
        execute("UPDATE conversation_tables SET version = 2")
    kept.close()
    before = dump(folder / "agent.db")
    with pytest.raises(
        ConversationError, match=r"conversations of version 2, this one reads 1.: upgrade, or use another"
    ):
        Conversations(folder / "agent.db")
    assert dump(folder / "agent.db") == before


@pytest.mark.parametrize(
    ("version", "to_do"), [(2, "train it again: `guardrails train"), (9, "upgrade this library, or train it again")]
)
def test_a_model_of_another_version_is_refused_with_its_version_and_what_to_do(version: int, to_do: str) -> None:
    body = json.loads((HERE / "0.2.0/retry_model.json").read_bytes()) | {"version": version}
    with pytest.raises(ModelError, match=f"version `{version}`, this library reads 3: {to_do}"):
        parse(json.dumps(body).encode())
