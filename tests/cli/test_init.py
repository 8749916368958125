"""
`guardrails init`: a first policy, from recorded calls or from nothing.
"""

import json

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails import JsonLines, Policy, Success
from tests.cli.command import guardrails


RESULTS = st.sampled_from(["a", "b", "Error: timeout", "not found"])


def recorded(path: Path, calls: Iterable[tuple[str, int, Any]]) -> Path:
    """
    A file of calls, each of a tool, with an argument and a result.
    """
    lines = (
        {"session_id": "s", "tool": tool, "arguments": {"q": q}, "result": result, "ts": 1.8e9 + n}
        for n, (tool, q, result) in enumerate(calls)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def judged(policy: Path, transcript: Path) -> dict[str, Any]:
    done = guardrails("replay", policy, transcript, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)["total"]
    return found


def refused_wrongly(policy: Path, transcript: Path) -> list[Any]:
    total = judged(policy, transcript)
    return [*total["wrong"], *(code for code in total["denied"] if code.startswith("budget."))]


def test_without_a_transcript_it_writes_a_starter_that_is_the_default_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("mine")
    done = guardrails("init", "-o", path, "--force")
    assert done.exit_code == 0, done.output
    assert f"guardrails policy check {path}" in done.stdout
    assert guardrails("policy", "check", path).exit_code == 0
    assert str(Policy.load(path).chain) == str(Policy.load("default").chain)
    for name in ("get_weather", "send_mail", "job_status", "run_tests"):
        assert Policy.load(path).chain.plan(name).tool == Policy.load("default").chain.plan(name).tool


def test_names_and_costs_propose_declarations_that_a_person_confirms(tmp_path: Path) -> None:
    records = JsonLines(tmp_path / "r.jsonl")
    session = Policy().session("s", records=records)
    for n in range(3):
        session.call("send_mail", {"n": n}, lambda *_: Success("sent", cost_usd=0.02))
    records.close()
    path = tmp_path / "policy.yaml"
    assert guardrails("init", tmp_path / "r.jsonl", "-o", path).exit_code == 0
    assert Policy.load(path).chain.plan("send_mail").tool == Policy.load("default").chain.plan("send_mail").tool
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if "- match: send_mail" in line)
    settings = [line for line in lines[at + 1 :] if line.startswith("  #   ") and "# " not in line[4:]]
    assert settings == ["  #   idempotent: false", "  #   repeats: ask", "  #   cost_usd: 0.02"]
    confirmed = ["  - match: send_mail", *(line.replace("#   ", "  ") for line in settings)]
    path.write_text("\n".join([*lines[:at], *confirmed]))
    tool = Policy.load(path).chain.plan("send_mail").tool
    assert (tool.idempotent, tool.repeats, tool.cost_usd) == (False, "ask", 0.02)


def test_a_policy_that_would_refuse_wrongly_only_observes(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    seen = recorded(tmp_path / "calls.jsonl", [("queue", 1, {"rows": rows}) for rows in (11, 11, 12) * 4])
    assert judged(Path("default"), seen)["wrong"]
    assert guardrails("init", seen, "-o", path).exit_code == 0
    assert refused_wrongly(path, seen) == []
    assert Policy.load(path).chain.mode == "observe"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1, max_size=12), st.integers(0, 2), RESULTS), min_size=1, max_size=60))
def test_whatever_was_recorded_nothing_is_refused_wrongly(tmp_path: Path, drawn: list[tuple[str, int, str]]) -> None:
    path, seen = tmp_path / "policy.yaml", recorded(tmp_path / "calls.jsonl", drawn)
    done = guardrails("init", seen, "-o", path, "--force")
    if done.exit_code == 1:
        assert "no calls found" in done.stderr
        return
    assert done.exit_code == 0, done.output
    assert guardrails("policy", "check", path).exit_code == 0, path.read_text()
    assert refused_wrongly(path, seen) == []
