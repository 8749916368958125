"""
SWE-agent's `.traj` files: an object with `trajectory` and `history`, or with `history` alone, as demonstrations have.

Calls are taken from the history, which has their tools, arguments and ids. Results and times come from the step of the
same action, whose observation is the result without the prompt around it. A step without a tool call is a line for its
shell: tool `bash`. The format has no flag for a failure. Tokens and cost are kept of a whole run only, and are left
out. Demonstrations in the prompt are no calls. A run of several attempts has a session for each.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import arguments_of, count, is_one_of, listed, mapping, objects, text
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parse, parsed_values
from guardrails.offline.readers.text.result_text import settle


SHELL: Final = "bash"
"""What SWE-agent calls the tool that runs a line in its shell."""
_MAX_AHEAD: Final = 100
"""Steps that are passed over for the one of an action."""
_SAID: Final = frozenset({"thought", "response"})
_ANSWERS: Final = frozenset({"tool", "user"})


class SWEAgent:
    """
    Runs of SWE-agent.
    """

    name = "swe-agent trajectory"
    whole = True

    def recognises(self, head: str) -> bool:
        return any(map(_is_run, leading_values(head)[:3]))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        for number, value in parsed_values(lines, report, file):
            found = mapping(value)
            if not found:
                report.broke(file, number)
                continue

            session_id = file if number == 1 else f"{file}:{number}"
            attempts = listed(found.get("attempts"))
            if not attempts:
                yield from _run(found, source, session_id)
            # What stands beside them is a copy of the one that was chosen.
            for place, attempt in enumerate(map(mapping, attempts)):
                yield from _run(attempt, source, f"{session_id}/{place}")


def _is_run(value: Any) -> bool:
    found = mapping(value)
    if listed(found.get("attempts")):
        found = mapping(found["attempts"][0])
    steps, turns = listed(found.get("trajectory")), listed(found.get("history"))
    return any(map(_is_step, steps[:3])) or any(map(_is_turn, turns[:3]))


def _is_step(value: Any) -> bool:
    step = mapping(value)
    return type(step.get("action")) is str and "observation" in step and not _SAID.isdisjoint(step)


def _is_turn(value: Any) -> bool:
    turn = mapping(value)
    return type(turn.get("role")) is str and type(turn.get("agent")) is str and "content" in turn


def _run(run: Mapping[str, Any], source: str, session_id: str) -> Iterator[RecordedCall]:
    """
    The calls of one run: agents below the first have sessions of their own.
    """
    steps = _Steps(listed(run.get("trajectory")))
    model = _model(run.get("replay_config"))
    turns = [turn for turn in objects(run.get("history")) if turn.get("is_demo") is not True]
    first = next((turn.get("agent") for turn in turns if text(turn.get("agent"))), None)
    counts: dict[str, tuple[int, int]] = {}
    if not any(any(_made(turn)) for turn in turns):
        # A run without a history still has what it did.
        turns = [{**step, "role": "assistant"} for step in steps.steps]
    for at, turn in enumerate(turns):
        agent = text(turn.get("agent"))
        named = session_id if agent in (None, first) else f"{session_id}/{agent}"
        index, number = counts.get(named, (0, 0))
        made = list(_made(turn))
        if not made:
            continue

        step = steps.of(turn.get("action"))
        answers = _answers(turns, at + 1)
        for place, (call_id, tool, arguments) in enumerate(made):
            call = RecordedCall(source, named, index + place, tool, arguments, turn=number + 1, id=call_id)
            call.has_result = False
            call.model = model
            answer = answers.get(call_id)
            if len(made) == 1 and "observation" in step:
                settle(call, step["observation"])
            elif answer is not None and "content" in answer:
                settle(call, answer["content"])
            seconds = step.get("execution_time")
            if call.has_result and len(made) == 1 and isinstance(seconds, int | float):
                call.duration_ms = count(seconds * 1000)
            yield call
        counts[named] = index + len(made), number + 1


class _Steps:
    """
    The steps of a run, asked for in their order.
    """

    def __init__(self, steps: list[Any]) -> None:
        self.steps = list(objects(steps))
        self._next = 0
        self._places: dict[str, list[int]] = {}
        for place, step in enumerate(self.steps):
            if action := text(step.get("action")):
                self._places.setdefault(action, []).append(place)

    def of(self, action: Any) -> Mapping[str, Any]:
        """
        Returns the next step of that action; an empty one if there is none near.
        """
        places = self._places.get(action, []) if type(action) is str else []
        at = bisect_left(places, self._next)
        if at == len(places) or places[at] >= self._next + _MAX_AHEAD:
            return {}

        self._next = places[at] + 1
        return self.steps[places[at]]


def _made(turn: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
    """
    Id, tool and arguments of each call of a turn.
    """
    if turn.get("role") != "assistant":
        return

    told = False
    for wire in objects(turn.get("tool_calls")):
        said = mapping(wire.get("function"))
        if tool := text(said.get("name")):
            told = True
            yield text(wire.get("id")), tool, arguments_of(said.get("arguments"))

    action = text(turn.get("action"))
    if not told and action is not None and action.strip():
        yield None, SHELL, {"command": action}


def _answers(turns: list[dict[str, Any]], start: int) -> dict[str | None, Mapping[str, Any]]:
    """
    Returns the results before the model's next turn, by the ids of their calls; the first of all for one without an id.
    """
    found: dict[str | None, Mapping[str, Any]] = {}
    for at in range(start, len(turns)):
        turn = turns[at]
        if not is_one_of(turn.get("role"), _ANSWERS):
            break
        for call_id in (None, *listed(turn.get("tool_call_ids"))):
            if call_id is None or type(call_id) is str:
                found.setdefault(call_id, turn)
    return found


def _model(config: Any) -> str | None:
    """
    The model that a run's configuration names, which is JSON in text.
    """
    if type(config) is str:
        try:
            config = parse(config.encode("utf-8", "surrogatepass"))
        except ValueError:
            return None
    return text(mapping(mapping(mapping(config).get("agent")).get("model")).get("name"))
