"""
What 0.2.0 wrote goes on: its sessions, records, conversations, models and policies.

A state that it packed is read in `tests/core/state/test_packing.py`, and goes on in `tests/stores/test_contract.py`.
"""

import json
import shutil
import sqlite3

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from guardrails import JsonLines, Policy, PolicyError, Tool
from guardrails.agent.conversations import Conversations
from guardrails.core.packing import VERSION
from guardrails.core.retries.model import parse
from guardrails.core.values.errors import ModelError
from tests.replaying import replay


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
    again = list(replay(policy.chain, records(folder / "records.jsonl"), scopes=policy.scopes))
    assert len(again) == 9
    assert all(one.same for one in again)


def test_a_conversation_is_resumed_and_its_session_goes_on_where_it_stopped(folder: Path, kept: Conversations) -> None:
    """
    What it used is used, what it has seen is seen, its scope goes on too, and so do its records.
    """
    assert {one.packed[0] for one in kept.store.entries()} == {6}
    policy = Policy.load(folder / "policy.yaml")
    chat = kept.resume("trip-42")
    with JsonLines(folder / "later.jsonl") as sink:
        assert len(chat) == 15
        assert chat.settings == {"policy": "policy.yaml", "model": "own-model"}
        own: dict[str, Any] = {"scopes": {"user": "u1"}, "clock": lambda: NOW}
        tools = [Tool(name="search_hotels"), Tool(name="book")]
        session = policy.session("trip-42", store=kept.store, tools=tools, records=sink, **own)
        assert (session.ledger.progress["calls_used"], session.ledger.progress["cost_left_usd"]) == (6, 1.979)
        chat.append({"role": "user", "content": "go on"})
        codes = [
            session.call("search_hotels", {"city": city}, lambda *_: ["h_9"]).code for city in ("Shibuya", *"abcdefgh")
        ]
        assert codes == ["duplicates.window", *[None] * 6, "budget.max_calls", "budget.max_calls"]
        assert len(chat) == 16
    used = {one.key: one.packed[0] for one in kept.store.entries()}
    assert used["trip-42"] == used["/user/u1"] == VERSION
    both = records(folder / "records.jsonl", folder / "later.jsonl")
    again = list(replay(policy.chain, both, scopes=policy.scopes))
    assert len(again) == 18
    assert all(one.same for one in again)


def test_a_newer_policy_is_refused_with_its_version_and_what_to_do(folder: Path) -> None:
    path = folder / "policy.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("version: 1", "version: 2"), encoding="utf-8")
    with pytest.raises(
        PolicyError, match=r"policy.yaml:1:10: write `version: 1`.* or upgrade toolcall-guardrails, got `2`"
    ):
        Policy.load(path)


def test_a_model_of_another_version_is_refused_with_its_version_and_what_to_do() -> None:
    body = json.loads((HERE / "0.2.0/retry_model.json").read_bytes())
    for version in (2, 9):
        with pytest.raises(
            ModelError, match=f"version `{version}`, this library reads 4: train it again: .*, or upgrade"
        ):
            parse(json.dumps({**body, "version": version}).encode())
