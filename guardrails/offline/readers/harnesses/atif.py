"""
ATIF, the trajectories of Harbor (Terminal-Bench): an object with `schema_version` `ATIF-v1.N` and `steps`.

A step of the agent holds its calls and their results, joined by the id of the call. A single result without an id
belongs to the step's only call. The format itself has no flag for a failure. Some of its writers add one
(`tool_result_is_error`), and the outputs of Codex say their exit code as in its own rollouts. Steps that were copied
from an earlier trajectory are left out. Embedded trajectories of sub-agents and side chains are sessions of their own.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import (
    amount,
    arguments_of,
    count,
    mapping,
    objects,
    text,
    time_ms,
)
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.text.result_text import settle
from guardrails.offline.readers.transcripts.codex_rollout import settle_output


_VERSION: Final = "ATIF-"
_BY_SERVER: Final = "web_search_call"
"""What the model's server does by itself is no call."""
_MAX_DEPTH: Final = 8
"""Sub-agents below sub-agents that are read."""


class ATIF:
    """
    Trajectories that harnesses exchange.
    """

    name = "atif trajectory"
    whole = True

    def recognises(self, head: str) -> bool:
        return any(
            (text(mapping(value).get("schema_version")) or "").startswith(_VERSION)
            for value in leading_values(head)[:3]
        )

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        for number, value in parsed_values(lines, report, file):
            found = mapping(value)
            if not found:
                report.broke(file, number)
                continue

            unnamed = file if number == 1 else f"{file}:{number}"
            session_id = text(found.get("session_id")) or text(found.get("trajectory_id")) or unnamed
            yield from _calls(found, source, session_id, _MAX_DEPTH)


def _calls(trajectory: Mapping[str, Any], source: str, session_id: str, depth: int) -> Iterator[RecordedCall]:
    agent = mapping(trajectory.get("agent"))
    is_codex = agent.get("name") == "codex"
    counts: dict[str, tuple[int, int]] = {}
    for step in objects(trajectory.get("steps")):
        made = [wire for wire in objects(step.get("tool_calls")) if text(wire.get("function_name"))]
        if is_codex:
            made = [wire for wire in made if wire["function_name"] != _BY_SERVER]
        if not made or step.get("is_copied_context") is True:
            continue

        of = _session(session_id, mapping(step.get("extra")))
        index, turn = counts.get(of, (0, 0))
        by_model = step.get("llm_call_count") != 0
        turn += by_model
        counts[of] = index + len(made), turn
        results = _results(step)
        metrics = mapping(step.get("metrics"))
        for place, wire in enumerate(made):
            call = RecordedCall(source, of, index + place, wire["function_name"], arguments_of(wire.get("arguments")))
            call.turn = turn if by_model else None
            call.id, call.has_result = text(wire.get("tool_call_id")), False
            call.model = text(step.get("model_name")) or text(agent.get("model_name"))
            call.ts_ms = time_ms(step.get("timestamp"))
            if place == 0:
                call.tokens_in = count(metrics.get("prompt_tokens"))
                call.tokens_out = count(metrics.get("completion_tokens"))
                call.cost_usd = amount(metrics.get("cost_usd"))
            result = results.get(call.id, results.get(None) if len(made) == 1 else None)
            if result is not None and "content" in result:
                _settle(call, result, is_codex=is_codex)
            yield call

    for place, below in enumerate(objects(trajectory.get("subagent_trajectories")) if depth else ()):
        name = text(below.get("trajectory_id")) or str(place)
        yield from _calls(below, source, f"{session_id}/{name}", depth - 1)


def _session(session_id: str, extra: Mapping[str, Any]) -> str:
    if extra.get("is_sidechain") is not True:
        return session_id
    return f"{session_id}/{text(extra.get('agent_id')) or 'sidechain'}"


def _results(step: Mapping[str, Any]) -> dict[str | None, Mapping[str, Any]]:
    """
    Returns the results of a step, by the id of their call. None: the only one, which names no call.
    """
    results = list(objects(mapping(step.get("observation")).get("results")))
    found: dict[str | None, Mapping[str, Any]] = {}
    for result in results:
        if call_id := text(result.get("source_call_id")):
            found.setdefault(call_id, result)
    if len(results) == 1 and results[0].get("source_call_id") is None:
        found[None] = results[0]
    return found


def _settle(call: RecordedCall, result: Mapping[str, Any], *, is_codex: bool) -> None:
    if is_codex:
        settle_output(call, result["content"])
        return

    extra = mapping(result.get("extra"))
    flag = extra.get("tool_result_is_error")
    # What the writer makes of the result has its own words and times after it.
    raw = mapping(mapping(extra.get("tool_result_metadata")).get("raw_tool_result"))
    settle(call, raw.get("content", result["content"]), failed=flag if type(flag) is bool else None)
