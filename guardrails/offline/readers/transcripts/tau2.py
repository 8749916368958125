"""
tau2-bench simulations: one simulation, or a results file with `simulations`.

The calls of the agent are read; the simulated user has tools of its own, which no guard of the agent sees.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.recent import Names
from guardrails.offline.readers.text.fields import amount, arguments_of, count, listed, mapping, objects, text, time_ms
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.text.result_text import settle


class Tau2:
    """
    Simulations with times, cost and usage.
    """

    name = "tau2 simulation"
    whole = True

    def recognises(self, head: str) -> bool:
        return any(map(_is_simulation, leading_values(head)[:3]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        names = Names()
        for number, value in parsed_values(lines, report, file):
            found = mapping(value)
            if not found:
                report.broke(file, number)
            for place, simulation in enumerate(
                objects(found.get("simulations")) if "simulations" in found else [found]
            ):
                session_id = _session_id(simulation) or (f"{file}:{number}" if number > 1 else file)
                if "simulations" in found and session_id == file:
                    session_id = f"{file}:{place}"
                messages = listed(simulation.get("messages"))
                yield from _calls(messages, source, names.give(session_id), _model(found))


def _is_simulation(value: Any) -> bool:
    found = mapping(value)
    if type(found.get("simulations")) is list:
        return True

    messages = listed(found.get("messages"))
    return any("turn_idx" in mapping(message) for message in messages[:3]) or (
        "task_id" in found and ("run_info" in found or "reward_info" in found)
    )


def _session_id(simulation: Mapping[str, Any]) -> str | None:
    told = (simulation.get("id"), mapping(simulation.get("run_info")).get("simulation_id"), simulation.get("task_id"))
    return next((str(each) for each in told if type(each) is int or text(each)), None)


def _model(results: Mapping[str, Any]) -> str | None:
    return text(mapping(mapping(results.get("info")).get("agent_info")).get("llm"))


def _calls(messages: list[Any], source: str, session_id: str, model: str | None) -> Iterator[RecordedCall]:
    index = turn = 0
    for at, message in enumerate(map(mapping, messages)):
        made = [wire for wire in objects(message.get("tool_calls")) if _is_agents(message, wire)]
        if not made:
            continue

        turn += 1
        results = _results(messages, at + 1)
        usage = mapping(message.get("usage"))
        for place, wire in enumerate(made):
            tool, call_id = text(wire.get("name")), text(wire.get("id"))
            if tool is None:
                continue

            call = RecordedCall(
                source, session_id, index, tool, arguments_of(wire.get("arguments")), turn=turn, id=call_id
            )
            call.has_result = False
            call.model, call.ts_ms = model, time_ms(message.get("timestamp"))
            if place == 0:
                call.tokens_in = count(usage.get("prompt_tokens"))
                call.tokens_out = count(usage.get("completion_tokens"))
                call.cost_usd = amount(message.get("cost"))
            answers = results.get(call_id or "")
            if answers:
                _settle(call, answers.popleft())
            index += 1
            yield call


def _settle(call: RecordedCall, result: Mapping[str, Any]) -> None:
    # A file that is cut off may end before what came back.
    if "content" not in result:
        return

    flag = result.get("error")
    settle(call, result["content"], failed=flag if type(flag) is bool else None)
    call.ended(time_ms(result.get("timestamp")))


def _is_agents(message: Mapping[str, Any], wire: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and wire.get("requestor", "assistant") == "assistant"


def _results(messages: list[Any], start: int) -> dict[str, deque[Mapping[str, Any]]]:
    """
    The results up to the next message that makes calls, by the id of their call.
    """
    found: dict[str, deque[Mapping[str, Any]]] = {}
    for at in range(start, len(messages)):
        message = mapping(messages[at])
        if any(objects(message.get("tool_calls"))):
            break
        for result in [message, *objects(message.get("tool_messages"))]:
            if result.get("role") == "tool":
                found.setdefault(text(result.get("id")) or "", deque()).append(result)
    return found
