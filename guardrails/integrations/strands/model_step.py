"""
One invocation of an agent: its model requests, of which one may take several if the final answer is asked for again.
"""

import json
import sys

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import Asking
from guardrails.session.final_answer import SILENT_CODE, Meaning


with needs("strands", "this adapter"):
    from strands.middleware import InvokeModelContext, ModelStopReason, TypedEvent

if TYPE_CHECKING:
    from guardrails.session.session import Session

MAX_OUTPUTS: Final = 5
"""Structured outputs that are not valid, before the model is asked for a last one with its tools off."""
DEEP_CODE: Final = "loop.recursion_limit"
"""Why a final answer is asked for before Python would end a run, of whose cycles the host makes each inside the one before."""
DEEP: Final = 0.75
"""So much of the recursion limit a cycle may start at; the rest is for what it calls."""
_ENDS: Final = frozenset({"end_turn", "stop_sequence", "tool_use"})
"""Reasons to stop that are the model's own; others, such as a cancellation, the host deals with."""
_UNSAID: Final = frozenset({"toolUse", "reasoningContent", "cachePoint"})


End = Callable[[], None] | None


class ModelStep:
    """
    The invocation's requests, asked as its *session* says. If *first*, a message of the user starts it. At its end
    *end* is called.
    """

    def __init__(self, session: "Session", *, first: bool = True, end: End = None) -> None:
        self.session = session
        self.end = end
        self.goes_on = False
        """What was asked is over, and the agent goes on by itself."""
        self.broken: dict[str, str] = {}
        """Of calls whose arguments were no JSON, what the model said; the host makes an empty object of it."""
        self.known: dict[int, tuple[Any, Tool]] = {}
        """Tools by their ids, and what the session is told of them."""
        self._asking = Asking(session, first=first)
        self._outputs = 0

    async def ask(
        self, context: InvokeModelContext, proceed: Callable[[Any], AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        """
        Ask the model; at the end without tools, and once more if it does not answer. Then the digest is its answer.
        """
        made = context.agent.tool_registry.dynamic_tools
        outputs = {name for name, tool in made.items() if tool.tool_type == "structured_output"}
        messages, spent = context.messages, []
        if _is_deep():
            self._asking.final.force(DEEP_CODE)
        while True:
            sent = await self.session.ledger.off_loop(self._sent, context.replace(messages=messages), outputs)
            stop, texts = None, {}
            try:
                async with aclosing(proceed(sent)) as events:
                    async for event in events:
                        if isinstance(event, ModelStopReason):
                            stop = event
                            continue
                        if use := event.get("current_tool_use"):
                            texts[use["toolUseId"]] = use["input"]
                        yield event
            finally:
                if stop is None:
                    await self.session.ledger.off_loop(self._asking.failed)
            if stop is None:
                return
            spent.append(stop.usage)
            reason, message = stop.stop_reason, self._kept(stop, outputs)
            calls = _calls(reason, message, outputs)
            answers = any(_is_output(block, outputs) for block in message["content"])
            meaning = await self.session.ledger.off_loop(self._take, stop, calls, answers, _model(context.model))
            if meaning == "again":
                if calls:
                    results = [await self.session.ledger.off_loop(self._refused, call) for call in calls]
                    messages = [*messages, message, {"role": "user", "content": results}]
                continue
            if meaning == "digest":
                text = await self.session.ledger.off_loop(getattr, self._asking, "digest")
                reason, message = "end_turn", {"role": "assistant", "content": [{"text": text}]}
                yield TypedEvent({"data": text, "delta": {"text": text}})
            self.broken = {call["toolUseId"]: text for call in calls if (text := _broken(call, texts))}
            yield ModelStopReason(reason, message, _sum(spent), stop.metrics)
            return

    def _sent(self, context: InvokeModelContext, outputs: Collection[str]) -> InvokeModelContext:
        """
        The request that is made now. At the end the output is all that can be called.
        """
        # Once the output is due it is the host that forces it.
        forces = context.structured_output_model is None and _forces(context.tool_choice)
        chosen = self._asking.ask("required" if forces else None)
        if self._asking.off:
            kept = [spec for spec in context.tool_specs if spec["name"] in outputs]
            return context.replace(tool_specs=kept, tool_choice={"tool": {"name": kept[0]["name"]}} if kept else None)
        return context.replace(tool_choice=None) if forces and chosen is None else context

    def _kept(self, stop: ModelStopReason, outputs: Collection[str]) -> Any:
        """
        The message of a response. With tools off nothing is left beside an output, since nothing else is run.
        """
        message = stop.message
        blocks = [block for block in message["content"] if _is_output(block, outputs)]
        if not self._asking.off or not blocks:
            return message
        return {
            **message,
            "content": [block for block in message["content"] if "toolUse" not in block or block in blocks],
        }

    def _take(self, stop: ModelStopReason, calls: list[Any], answers: bool, model: str) -> Meaning:
        said = _said(stop.message) or ("-" if answers or stop.stop_reason not in _ENDS else "")
        usage = stop.usage if any(stop.usage.values()) else None
        meaning = self._asking.take(said, calls, model=model, usage=usage)
        if answers:
            self._outputs += 1
            if self._outputs > MAX_OUTPUTS + 1 and self._asking.off:
                return "digest"
            if self._outputs > MAX_OUTPUTS:
                self._asking.final.force(SILENT_CODE)
        return meaning

    def _refused(self, call: Any) -> Any:
        envelope = self._asking.refusal(call["name"], call["input"], id=call["toolUseId"])
        result = {"toolUseId": call["toolUseId"], "status": "error", "content": [{"text": envelope.to_json()}]}
        return {"toolResult": result}


def _is_deep() -> bool:
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    left = int(DEEP * sys.getrecursionlimit())
    while frame is not None and left:
        frame, left = frame.f_back, left - 1
    return frame is not None


def _is_output(block: Any, outputs: Collection[str]) -> bool:
    return "toolUse" in block and block["toolUse"]["name"] in outputs


def _calls(reason: str, message: Any, outputs: Collection[str]) -> list[Any]:
    blocks = message["content"] if reason == "tool_use" else []
    return [block["toolUse"] for block in blocks if "toolUse" in block and not _is_output(block, outputs)]


def _said(message: Any) -> str:
    """
    Returns the answer in *message*: its text, or the kinds of its other parts, such as an image.
    """
    text = "".join(block.get("text", "") for block in message["content"])
    if text.strip():
        return text
    return " ".join(kind for block in message["content"] for kind in block if kind not in _UNSAID and kind != "text")


def _broken(call: Any, texts: Mapping[str, Any]) -> str | None:
    text = texts.get(call["toolUseId"])
    if call["input"] != {} or not isinstance(text, str) or not text.strip():
        return None
    try:
        json.loads(text)
    except ValueError:
        return text
    return None


def _forces(choice: Any) -> bool:
    return bool(choice) and ("any" in choice or "tool" in choice)


def _model(model: Any) -> str:
    config = model.get_config()
    name = config.get("model_id") if isinstance(config, Mapping) else getattr(config, "model_id", None)
    return name if isinstance(name, str) else ""


def _sum(usages: list[Any]) -> Any:
    """
    The usage of all responses, of which the host sees the last.
    """
    return {name: sum(usage.get(name, 0) for usage in usages) for usage in usages for name in usage}
