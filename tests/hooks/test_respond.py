"""
Any bytes in, exactly one JSON object out that the client accepts; failures of one's own as the policy says.
"""

import itertools
import json

from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails.hooks.clients import CLIENTS, client_of
from guardrails.hooks.options import Options
from guardrails.hooks.respond import respond
from tests.hooks.driven import Claude, Codex, Gemini, reason, refused
from tests.tables import table


DRIVEN: Final = (Claude, Codex, Gemini)
ANSWERS: Final = json.loads(Path(__file__).with_name("answers.json").read_text())
SCHEMAS: Final = {client: jsonschema_rs.validator_for(schema) for client, schema in ANSWERS.items()}
"""What each client accepts of what is ever said to it: of Codex to the letter, for it lets a call run at one key too many."""
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES: Final = st.sampled_from(sorted({name for client in CLIENTS.values() for name in client.kinds} | {"Nope"}))
FIELDS: Final = json.loads(Path(__file__).with_name("fields.json").read_text())
KNOWN: Final = {name: st.sampled_from(values) for name, values in FIELDS["known"].items()}
EVENTS: Final = st.builds(
    lambda name, said, plain: json.dumps({**said, **plain, "hook_event_name": name}).encode("utf-8", "surrogatepass"),
    NAMES,
    st.dictionaries(st.sampled_from(FIELDS["any"]), VALUES, max_size=12),
    st.fixed_dictionaries({"session_id": st.sampled_from("st")}, optional=KNOWN),
)
POLICY: Final = Path(__file__).with_name("respond.yaml").read_text()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=EVENTS | st.binary(max_size=60), client=st.sampled_from([None, "claude", "codex", "gemini"]))
def test_whatever_comes_is_answered_as_the_client_accepts(tmp_path: Path, data: bytes, client: str | None) -> None:
    policy = tmp_path / "policy.yaml"
    if not policy.exists():
        policy.write_text(POLICY)
    own: Any = {"client": client, "policy": str(policy)}
    options = Options(store=str(tmp_path / "s.db"), records=str(tmp_path / "r.jsonl"), **own)
    said = json.loads(respond(data, options))
    assert isinstance(said, dict)
    wanted = [SCHEMAS[client]] if client is not None else SCHEMAS.values()
    assert any(schema.is_valid(said) for schema in wanted), said
    assert respond(data, Options(store=str(tmp_path / "o.db"), observe=True, **own)) == b"{}"


# Failures of one's own


BAD: Final = [
    *(b"", b"[]", b"\xff\xfe\x00", b"[" * 200_000, b'{"hook_event_name": "PreToolUse", "session_id": "s"}'),
    b'{"hook_event_name": "PreToolUse", "session_id": "s", "turn_id": "t", "tool_na',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "1"}',
]
"""Nothing, no object, no text, a deep one, without a tool, half of one, without a session."""


@table("data, client, on_error", itertools.product(BAD, CLIENTS, ("deny", "allow")))
def test_what_cannot_be_read_is_for_the_policy_to_say(tmp_path: Path, data: bytes, client: str, on_error: str) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\non_error: {on_error}\n")
    named = data.replace(b"PreToolUse", b"BeforeTool" if client == "gemini" else b"PreToolUse")
    said = json.loads(respond(named, Options(client=client, policy=str(policy), store=str(tmp_path / "s.db"))))
    assert refused(said) is (on_error == "deny")
    assert SCHEMAS[client].is_valid(said)


@table("driven, on_error", itertools.product(DRIVEN, ("deny", "allow")))
def test_a_store_that_is_gone_is_answered_as_the_policy_says(tmp_path: Path, driven: Any, on_error: str) -> None:
    made = driven(tmp_path, f"version: 1\non_error: {on_error}\n")
    (made.folder / "hooks.db").mkdir()
    assert refused(made.before()) is (on_error == "deny")
    assert [made.after(), made.tell("SessionStart", source="startup")] == [{}, {}]


@table("client, wrong", itertools.product(DRIVEN, ("budgt", "--observ")))
def test_without_a_policy_only_looks_run_and_a_person_is_told(tmp_path: Path, client: Any, wrong: str) -> None:
    made = client(tmp_path, "version: 1\nbudgt: {}\n" if wrong == "budgt" else POLICY)
    if wrong == "--observ":
        # An option that nobody knows is as good as a policy that cannot be used.
        made.option(wrong)
    said = made.before()
    assert refused(said)
    assert wrong in str(said)
    look = {Claude: "Read", Codex: "view_image", Gemini: "read_file"}[client]
    assert wrong in made.before(look, {"path": "a"})["systemMessage"]
    assert wrong in made.tell("SessionStart")["systemMessage"]


@table(
    "driven, policy",
    itertools.product(
        DRIVEN, ("growth: {max_requests_per_second: 3}", "retryable: {auto: true}", "tools: [{match: x, timeout: 5}]")
    ),
)
def test_a_limit_that_a_client_cannot_hold_is_told_at_the_start(tmp_path: Path, driven: Any, policy: str) -> None:
    for written, told in ((policy, True), ("extends: default\nbudget: {max_cost_usd: 1}", False)):
        said = driven(tmp_path, f"version: 1\n{written}\n").tell("SessionStart").get("systemMessage", "")
        assert ("not held" in said) is told


def test_the_settings_that_are_kept_are_read_without_the_file_format(tmp_path: Path) -> None:
    made = Claude(tmp_path)
    made.before()
    [kept] = [path for path in made.folder.iterdir() if ".policy-" in path.name]
    settings = json.loads(kept.read_text())
    settings["settings"]["budget"] = {"max_calls": 1}
    kept.write_text(json.dumps(settings))
    assert reason(made.before(arguments={"command": "ls"}))["code"] == "budget.max_calls"


def test_kept_settings_that_are_damaged_are_made_anew_or_let_no_call_run(tmp_path: Path) -> None:
    made = Claude(tmp_path)
    made.before()
    [kept] = [path for path in made.folder.iterdir() if ".policy-" in path.name]
    whole = kept.read_bytes()
    for command, damaged in {"pwd": b"[]", "id": b"[" * 100_000}.items():
        kept.write_bytes(damaged)
        assert made.before(arguments={"command": command}) == {}
        assert kept.read_bytes() == whole
    kept.write_text(json.dumps({**json.loads(whole), "settings": 5}))
    assert refused(made.before(arguments={"command": "date"}))


def test_a_client_is_known_by_what_it_tells() -> None:
    for path in Path(__file__).with_name("events").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            assert client_of(json.loads(line)) is CLIENTS[path.stem.partition("-")[0]]


def test_the_store_is_in_the_users_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "t", "tool_input": {}, "tool_use_id": "1"}
    assert respond(json.dumps(event).encode(), Options(observe=True)) == b"{}"
    assert {"hooks.db", "hooks.jsonl"} <= {path.name for path in (tmp_path / "guardrails").iterdir()}
    assert (tmp_path / "guardrails").stat().st_mode & 0o077 == 0
