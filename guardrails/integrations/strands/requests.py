"""
The model requests of one invocation of an agent: tools off when it is time, each response charged, an answer at the end.
"""

import json

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import Asking, Last, nothing


with needs("strands", "this adapter"):
    from strands.middleware import InvokeModelContext, ModelStopReason, TypedEvent

if TYPE_CHECKING:
    from guardrails.session.session import Session

_ENDS: Final = frozenset({"end_turn", "stop_sequence", "tool_use"})
"""Reasons to stop that are the model's own; others, such as a cancellation, the host deals with."""
_UNSAID: Final = frozenset({"toolUse", "reasoningContent", "cachePoint"})


class Invocation:
    """
    One invocation of an agent in its *session*. If *first*, a message of the user starts it. At its end *end* is called.
    """

    def __init__(self, session: "Session", end: Callable[[], None] = nothing, *, first: bool = False) -> None:
        self.session = session
        self.end = end
        self.broken: dict[str, str] = {}
        """Of calls whose arguments were no JSON, what the model said; the host makes an empty object of it."""
        self._asking = Asking(session, first=first)

    async def ask(
        self, context: InvokeModelContext, proceed: Callable[[Any], AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        """
        Ask the model; at the end without tools, and once more if it does not answer. Then the digest is its answer.
        """
        made = context.agent.tool_registry.dynamic_tools
        outputs = {name for name, tool in made.items() if tool.tool_type == "structured_output"}
        asking, name = self._asking, _model(context.model)
        # Once the output is due it is the host that forces it.
        forces = context.structured_output_model is None and bool({"any", "tool"} & {*(context.tool_choice or ())})

        async def send(choice: Any) -> AsyncGenerator[Any, None]:
            stop, texts = None, {}
            async with aclosing(
                proceed(_sent(context, outputs, off=asking.off, forced=forces, choice=choice))
            ) as events:
                async for event in events:
                    if isinstance(event, ModelStopReason):
                        stop = event
                        continue
                    if use := event.get("current_tool_use"):
                        texts[use["toolUseId"]] = use["input"]
                    yield event
            if stop is not None:
                yield Last((stop, texts))

        end: list[Any] = []
        requested = "required" if forces else None
        async with aclosing(asking.stream(requested, send, lambda said: _read(said[0], name, outputs))) as events:
            async for event in events:
                if isinstance(event, Last):
                    (stop, texts), digest = event.response
                    end = _told(digest, stop) if digest is not None else [self._kept(stop, texts, outputs)]
                else:
                    yield event
        for event in end:
            yield event

    def _kept(self, stop: ModelStopReason, texts: Mapping[str, Any], outputs: Collection[str]) -> ModelStopReason:
        """
        The end of a response. With tools off nothing is left beside an output, since nothing else is run.
        """
        self.broken = {call["toolUseId"]: text for call in _calls(stop, outputs) if (text := _broken(call, texts))}
        message: Any = stop.message
        if not self._asking.off or not any(_is_output(block, outputs) for block in message["content"]):
            return stop
        blocks = [block for block in message["content"] if "toolUse" not in block or _is_output(block, outputs)]
        return ModelStopReason(stop.stop_reason, {**message, "content": blocks}, stop.usage, stop.metrics)


def _sent(
    context: InvokeModelContext, outputs: Collection[str], *, off: bool, forced: bool, choice: Any
) -> InvokeModelContext:
    """
    The request that is made now. At the end the output is all that can be called.
    """
    if off:
        kept = [spec for spec in context.tool_specs if spec["name"] in outputs]
        return context.replace(tool_specs=kept, tool_choice={"tool": {"name": kept[0]["name"]}} if kept else None)
    return context.replace(tool_choice=None) if forced and choice is None else context


def _read(stop: ModelStopReason, model: str, outputs: Collection[str]) -> tuple[str, int, dict[str, Any]]:
    content = stop.message["content"]
    said = "".join(block.get("text", "") for block in content).strip()
    # Its other parts answer too, such as an image.
    said = said or " ".join(kind for block in content for kind in block if kind not in _UNSAID and kind != "text")
    answers = any(_is_output(block, outputs) for block in content) or stop.stop_reason not in _ENDS
    usage = stop.usage if any(stop.usage.values()) else None
    return said or ("-" if answers else ""), len(_calls(stop, outputs)), {"model": model, "usage": usage}


def _told(text: str, stop: ModelStopReason) -> list[Any]:
    message: Any = {"role": "assistant", "content": [{"text": text}]}
    end = ModelStopReason("end_turn", message, stop.usage, stop.metrics)
    return [TypedEvent({"data": text, "delta": {"text": text}}), end]


def _is_output(block: Any, outputs: Collection[str]) -> bool:
    return "toolUse" in block and block["toolUse"]["name"] in outputs


def _calls(stop: ModelStopReason, outputs: Collection[str]) -> list[Any]:
    blocks: list[Any] = stop.message["content"] if stop.stop_reason == "tool_use" else []
    return [block["toolUse"] for block in blocks if "toolUse" in block and not _is_output(block, outputs)]


def _broken(call: Any, texts: Mapping[str, Any]) -> str | None:
    text = texts.get(call["toolUseId"])
    if call["input"] != {} or not isinstance(text, str) or not text.strip():
        return None
    try:
        json.loads(text)
    except ValueError:
        return text
    return None


def _model(model: Any) -> str:
    config = model.get_config()
    name = config.get("model_id") if isinstance(config, Mapping) else getattr(config, "model_id", None)
    return name if isinstance(name, str) else ""
