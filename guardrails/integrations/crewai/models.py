"""
Models of crewai whose requests are those of the run that makes them.
"""

import json

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, Final

from pydantic import BaseModel

from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed

from .running import Run, guarded, running


with needs("crewai", "`Guardrails`"):
    from crewai.agents.parser import AgentAction, OutputParserError, parse
    from crewai.utilities.agent_utils import extract_tool_call_info, is_tool_call_list
    from crewai.utilities.i18n import I18N_DEFAULT

REPEATED: Final = 4
"""So often the same call has had the same result; once more, and the host ends the run by an exception."""
REPEATED_CODE: Final = "loop.repeated_call"
OFFERED_NONE: Final = "loop.no_tools"
"""Why a final answer is asked for if a model calls tools that it was not offered."""

_OBSERVED: Final = I18N_DEFAULT.slice("observation")

Steps = Generator[tuple[Any, Any], Any, Any]


class GuardedModel:
    """
    The guarding methods that are put before the class of a model.
    """

    def call(self: Any, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """
        Ask it as the run lets it.
        """
        run = running.get()
        base: Any = super()
        if run is None:
            return base.call(messages, tools, *args, **options)
        steps = self._steps(run, messages, tools, options.get("from_agent"))
        given = next(steps)
        while True:
            token = running.set(None)
            try:
                answer = base.call(*given, *args, **options)
            except BaseException:
                run.asking.failed()
                raise
            finally:
                running.reset(token)
            try:
                given = steps.send(answer)
            except StopIteration as stop:
                return stop.value

    async def acall(self: Any, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """
        The same, awaited.
        """
        run = running.get()
        base: Any = super()
        if run is None:
            return await base.acall(messages, tools, *args, **options)
        steps, off_loop = self._steps(run, messages, tools, options.get("from_agent")), run.session.ledger.off_loop
        given = await off_loop(next, steps)
        while True:
            token = running.set(None)
            try:
                answer = await base.acall(*given, *args, **options)
            except BaseException:
                await off_loop(run.asking.failed)
                raise
            finally:
                running.reset(token)
            done, given = await off_loop(_sent, steps, answer)
            if done:
                return given

    def _steps(self: Any, run: Run, messages: Any, tools: Any, agent: Any) -> Steps:
        """
        Returns the requests to make, until there is an answer.
        """
        asking, more = run.asking, list[Any]()
        # A model without native function calling reads of its tools in the prompt, and calls by text.
        by_text = tools is None and agent is not None
        if isinstance(messages, list):
            _settle(run, messages)
        while True:
            asking.ask()
            before = self.get_token_usage_summary()
            end = [{"role": "user", "content": I18N_DEFAULT.errors("force_final_answer")}] if asking.off else []
            # The host's own list unless there is more to say: a request may be shortened in place.
            given = [*messages, *more, *end] if isinstance(messages, list) and (more or end) else messages
            answer = yield given, None if asking.off else tools
            text, calls = _read(answer, by_text=by_text)
            if calls and not by_text and not tools:
                asking.final.force(OFFERED_NONE)
            used = self.get_token_usage_summary().delta_since(before)
            meaning = asking.take(text, calls, model=self.model, usage=used if used.total_tokens else None)
            if meaning == "run":
                run.odd.update((key, (name, given)) for key, name, given in calls if _is_odd(name, given, tools))
                return answer
            if meaning == "answered":
                said = by_text and asking.off and isinstance(answer, str) and "Final Answer:" not in text
                return f"Final Answer: {text}" if said else answer
            if meaning == "digest":
                return f"Final Answer: {asking.digest}" if by_text else asking.digest
            more = _refused(run, calls, by_text=by_text)


def _sent(steps: Steps, answer: Any) -> tuple[bool, Any]:
    try:
        return False, steps.send(answer)
    except StopIteration as stop:
        return True, stop.value


Made = tuple[str, str, str]
"""A call: its id, name, and arguments as JSON, or what was to be JSON."""


def _read(answer: Any, *, by_text: bool) -> tuple[str, list[Made]]:
    if isinstance(answer, list) and is_tool_call_list(answer):
        made = [info for one in answer if (info := extract_tool_call_info(one)) is not None]
        return "", [(key, name, given if isinstance(given, str) else json.dumps(given)) for key, name, given in made]
    if isinstance(answer, BaseModel):
        return answer.model_dump_json(), []
    text = "" if answer is None else str(answer)
    if by_text:
        try:
            action = parse(text)
        except OutputParserError:
            # The host tells the model so, and asks again.
            return text, []
        if isinstance(action, AgentAction):
            return "", [("", action.tool, action.tool_input)]
    return text, []


def _is_odd(name: str, given: str, tools: Sequence[Any] | None) -> bool:
    """
    Returns whether the host answers a call of *name* itself: the tool does not exist, or *given* is no JSON.
    """
    if all(tool["function"]["name"] != name for tool in tools or ()):
        return tools is not None
    return not _is_json(given)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _settle(run: Run, messages: list[Any]) -> None:
    """
    Tell what the host answered itself, and ask for the final answer before the host gives the run up.
    """
    run.since = len(messages) if run.since is None else run.since
    made: dict[str, tuple[str, str]] = {}
    same: Counter[tuple[str, str, str]] = Counter()
    for message in messages[run.since :]:
        for call in message.get("tool_calls") or ():
            made[call["id"]] = call["function"]["name"], call["function"]["arguments"]
        if message.get("role") == "assistant" and isinstance(message.get("content"), str):
            said, _, observed = message["content"].partition(_OBSERVED)
            _, acts = _read(said, by_text=bool(observed))
            same.update((name, given, observed) for _, name, given in acts)
        key = message.get("tool_call_id")
        if message.get("role") != "tool" or key not in made:
            continue
        text = message["content"]
        same[(*made[key], str(text))] += 1
        if key in run.odd:
            name, given = run.odd.pop(key)
            missing = Failed(f"`{name}` is not there. {text}", error_type="tool_missing")
            envelope = run.session.call(name, given, lambda *_, missing=missing: missing)
            message["content"] = envelope.to_json()
            if _is_json(given):
                run.missed[name, given] += 1
    if max((*same.values(), *run.missed.values()), default=0) >= REPEATED:
        run.asking.final.force(REPEATED_CODE)


def _refused(run: Run, calls: list[Made], *, by_text: bool) -> list[Any]:
    """
    Returns the answers to the *calls* of a model that is asked once more.
    """
    if by_text or not calls:
        return []
    made = [
        {"id": key, "type": "function", "function": {"name": name, "arguments": given}} for key, name, given in calls
    ]
    told = [
        {
            "role": "tool",
            "tool_call_id": key,
            "name": name,
            "content": run.asking.refusal(name, given).to_json(),
        }
        for key, name, given in calls
    ]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *told]


def guard_model(model: Any) -> Any:
    """
    *model*, whose requests are those of the run that makes them.
    """
    return model if isinstance(model, GuardedModel) else guarded(GuardedModel, model, None)
