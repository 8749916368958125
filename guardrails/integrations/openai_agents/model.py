"""
Models of the host, asked as the session of the run says.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from guardrails.core.values.errors import needs

from .running import Behind, Running, running
from .tools import guard, is_served


with needs("openai-agents", "`GuardedRunner`"):
    from agents import ModelResponse, Usage
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from openai.types.responses import (
        ResponseCompletedEvent,
        ResponseOutputItemDoneEvent,
        ResponseOutputMessage,
        ResponseOutputText,
        ResponseTextDeltaEvent,
    )


class GuardedProvider(Behind):
    """
    A provider of models that are asked as the session of the run says.
    """

    _latest: Any = None
    """The host tells models apart by being the same object."""

    def get_model(self, model_name: str | None) -> Any:
        """
        The model of that name.
        """
        model = self.inner.get_model(model_name)
        if self._latest is None or self._latest.inner is not model:
            self._latest = guarded_model(model)
        return self._latest


def guarded_model(model: Any) -> Any:
    """
    *model*, asked as the session of the run says.
    """
    return model if type(model) is GuardedModel else GuardedModel(model)


class GuardedModel(Behind):
    """
    A model that is charged to the session of the run. Once the session is exhausted, the model's tools are off. If it
    calls all the same, it is asked once more; then the session's digest is its message.
    """

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *schema: Any, **more: Any
    ) -> ModelResponse:
        run, used = running.get(), Usage()
        if run is None:
            return await self._get(system_instructions, input, model_settings, tools, *schema, **more)
        while True:
            settings = await self._ask(run, model_settings, tools, schema, more)
            try:
                response = await self._get(system_instructions, input, settings, tools, *schema, **more)
            except BaseException:
                await run.session.ledger.off_loop(run.asking.failed)
                raise
            used.add(response.usage)
            meaning = await run.session.ledger.off_loop(run.take, response.output, response.usage, self._name)
            if meaning == "digest":
                return replace(response, output=[_message(await run.session.ledger.off_loop(_digest, run))], usage=used)
            if meaning != "again" or more.get("conversation_id"):
                # The server keeps that conversation: each of its calls is to be answered, by a refusal.
                return replace(response, usage=used)

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *schema: Any, **more: Any
    ) -> AsyncIterator[Any]:
        run, wasted = running.get(), []
        while True:
            settings = model_settings if run is None else await self._ask(run, model_settings, tools, schema, more)
            held: list[Any] = []
            items: list[Any] = []
            last: Any = None
            try:
                stream = self.inner.stream_response(system_instructions, input, settings, tools, *schema, **more)
                async with _closing(stream):
                    async for event in stream:
                        if run is None:
                            yield event
                            continue
                        if isinstance(event, ResponseCompletedEvent):
                            last = event
                        elif isinstance(event, ResponseOutputItemDoneEvent):
                            items.append(event.item)
                        held.append(event)
                        # What may have to be asked anew is held back: a call with tools off, and the end.
                        if last is None and (not run.asking.off or _speaks(event)):
                            for each in held:
                                yield each
                            held = []
            except BaseException:
                if run is not None:
                    await run.session.ledger.off_loop(run.asking.failed)
                raise
            if run is None or last is None:
                if run is not None:
                    await run.session.ledger.off_loop(run.asking.failed)
                break
            response = last.response
            meaning = await run.session.ledger.off_loop(run.take, response.output or items, response.usage, self._name)
            wasted.append(response.usage)
            if meaning == "digest":
                held = _told(await run.session.ledger.off_loop(_digest, run), last)
            elif meaning == "again" and not more.get("conversation_id"):
                continue
            response = held[-1].response if held[-1].type == "response.completed" else response
            response.usage = _sum(wasted)
            break
        for event in held:
            yield event

    @property
    def _name(self) -> str:
        name = getattr(self.inner, "model", None)
        return name if isinstance(name, str) else ""

    async def _get(self, *args: Any, **more: Any) -> ModelResponse:
        response: ModelResponse = await self.inner.get_response(*args, **more)
        return response

    async def _ask(self, run: Running, settings: Any, tools: Any, schema: tuple[Any, ...], more: dict[str, Any]) -> Any:
        # The host says some by place in one way of asking and all by name in the other.
        for tool in tools:
            # One that was added since the run began.
            if not is_served(tool):
                guard(tool)
        handoffs = schema[1] if len(schema) > 1 else more.get("handoffs")
        return await run.session.ledger.off_loop(run.ask, settings, tools, handoffs or [])


@asynccontextmanager
async def _closing(stream: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if hasattr(stream, "aclose"):
            await stream.aclose()


def _digest(run: Running) -> str:
    run.told = run.asking.answer or ""
    return run.told


def _message(text: str) -> ResponseOutputMessage:
    said = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, type="message", role="assistant", status="completed", content=[said]
    )


def _told(text: str, last: ResponseCompletedEvent) -> list[Any]:
    message, n = _message(text), last.sequence_number
    at: dict[str, Any] = {"output_index": 0, "sequence_number": n}
    delta: dict[str, Any] = {"delta": text, "item_id": message.id, "content_index": 0, "logprobs": []}
    return [
        ResponseTextDeltaEvent(type="response.output_text.delta", **delta, **at),
        ResponseOutputItemDoneEvent(type="response.output_item.done", item=message, **at),
        last.model_copy(update={"response": last.response.model_copy(update={"output": [message]})}),
    ]


def _speaks(event: Any) -> bool:
    return event.type in ("response.output_text.delta", "response.refusal.delta")


def _sum(usages: list[Any]) -> Any:
    """
    The usage of all responses, of which the host sees the last.
    """
    told = [usage for usage in usages if usage is not None]
    if len(told) < 2:
        return told[0] if told else None
    counts = ("input_tokens", "output_tokens", "total_tokens")
    return told[-1].model_copy(update={name: sum(getattr(usage, name) for usage in told) for name in counts})
