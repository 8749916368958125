"""
Models of crewai whose requests are those of the run that makes them.
"""

import json

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import BaseModel

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import awaited, finished, missing

from .running import Run, guarded, running


with needs("crewai", "`Guardrails`"):
    from crewai.agents.parser import AgentAction, OutputParserError, parse
    from crewai.utilities.agent_utils import extract_tool_call_info, is_tool_call_list
    from crewai.utilities.i18n import I18N_DEFAULT

REPEATED: Final = 4
"""So often the host itself has answered the same call; once more, and it ends the run by an exception."""
REPEATED_CODE: Final = "loop.repeated_call"
OFFERED_NONE: Final = "loop.no_tools"
"""Why a final answer is asked for if a model calls tools that it was not offered."""

Made = tuple[str, str, str]
"""A call: its id, name, and arguments as JSON, or what was to be JSON."""


class GuardedModel:
    """
    The guarding methods that are put before the class of a model.
    """

    def call(self: Any, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """
        Ask it as the run lets it.
        """
        run, ask = running.get(), super().call  # type: ignore[misc]
        if run is None:
            return ask(messages, tools, *args, **options)
        run.asking.blocking = True
        return finished(_asked(self, run, messages, tools, lambda *given: ask(*given, *args, **options), options))

    async def acall(self: Any, messages: Any, tools: Any = None, *args: Any, **options: Any) -> Any:
        """
        The same, awaited.
        """
        run, ask = running.get(), super().acall  # type: ignore[misc]
        if run is None:
            return await ask(messages, tools, *args, **options)
        run.asking.blocking = False
        return await _asked(self, run, messages, tools, lambda *given: ask(*given, *args, **options), options)


def guard_model(model: Any) -> Any:
    """
    *model*, whose requests are those of the run that makes them.
    """
    return model if isinstance(model, GuardedModel) else guarded(GuardedModel, model, None)


async def _asked(model: Any, run: Run, messages: Any, tools: Any, ask: Callable[..., Any], options: Any) -> Any:
    asking, before = run.asking, model.get_token_usage_summary()
    # A model without native function calling reads of its tools in the prompt, and calls by text.
    by_text = tools is None and options.get("from_agent") is not None
    if isinstance(messages, list):
        await asking.off_loop(_settle, run, messages, by_text=by_text)

    async def send(_: Any) -> Any:
        given = messages
        if asking.off and isinstance(messages, list):
            # The host's own list unless there is more to say: a request may be shortened in place.
            given = [*messages, {"role": "user", "content": I18N_DEFAULT.errors("force_final_answer")}]
        token = running.set(None)
        try:
            return await awaited(ask(given, None if asking.off else tools))
        finally:
            running.reset(token)

    def read(answer: Any) -> tuple[str, int, dict[str, Any]]:
        nonlocal before
        text, calls = _read(answer, by_text=by_text)
        if calls and not by_text and not tools:
            asking.final.force(OFFERED_NONE)
        now = model.get_token_usage_summary()
        used, before = now.delta_since(before), now
        run.odd.update((key, (name, given)) for key, name, given in calls if _is_odd(name, given, tools))
        return text, len(calls), {"model": model.model, "usage": used if used.total_tokens else None}

    answer, digest = await asking.respond(None, send, read)
    said = answer if digest is None else digest
    if by_text and asking.off and isinstance(said, str) and "Final Answer:" not in said:
        return f"Final Answer: {said}"
    return said


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
    try:
        json.loads(given)
    except ValueError:
        return True
    return False


def _settle(run: Run, messages: list[Any], *, by_text: bool) -> None:
    """
    Tell what the host answered itself, and ask for the final answer before the host gives the run up.
    """
    run.since = len(messages) if run.since is None else run.since
    same: Counter[Any] = Counter()
    for message in messages[run.since :]:
        key, text = message.get("tool_call_id"), message.get("content")
        if key in run.odd:
            name, given = run.odd[key]
            same[name, given] += 1
            if key not in run.settled:
                run.settled.add(key)
                message["content"] = run.session.call(name, given, missing).to_json()
        elif by_text and message.get("role") == "assistant":
            same[text] += 1
    if max(same.values(), default=0) >= REPEATED:
        run.asking.final.force(REPEATED_CODE)
