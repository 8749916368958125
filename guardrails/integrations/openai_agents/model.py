"""
Models of the host, asked as the session of the run says.
"""

import inspect

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import Last

from .run import Behind, Run, running
from .tools import guard


with needs("openai-agents", "`GuardedRunner`"):
    from agents import ItemHelpers, Model, ModelResponse
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from openai.types.responses import (
        ResponseCompletedEvent,
        ResponseOutputItemDoneEvent,
        ResponseOutputMessage,
        ResponseOutputText,
        ResponseTextDeltaEvent,
    )


_PARAMETERS: Final = inspect.signature(Model.get_response)
_PROVIDERS_OWN: Final = frozenset(
    {
        *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("mcp_call", "tool_search_call"),
    }
)
"""Calls that the provider makes itself; the host makes all others, or asks a person."""
_SPEAKS: Final = frozenset({"response.output_text.delta", "response.refusal.delta"})


class GuardedProvider(Behind):
    """
    A provider of models that are asked as the session of the run says.
    """

    _latest: Any = None
    """The host tells models apart by being the same object."""

    def get_model(self, model_name: str | None) -> Any:
        model = self.inner.get_model(model_name)
        if self._latest is None or self._latest.inner is not model:
            self._latest = GuardedModel.of(model)
        return self._latest


class GuardedModel(Behind):
    """
    A model that is charged to the session of the run. Once the session is exhausted, the model's tools are off. If it
    calls all the same, it is asked once more; then the session's digest is its message.
    """

    @classmethod
    def of(cls, model: Any) -> Any:
        """
        *model*, asked as the session of the run says.
        """
        return model if type(model) is cls else cls(model)

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        run, asked = running.get(), _by_name(given, named)

        async def send(choice: Any) -> Any:
            return await self.inner.get_response(**_chosen(asked, choice))

        if run is None:
            response: ModelResponse = await self.inner.get_response(**asked)
            return response
        response, digest = await run.asking.respond(_begun(run, asked), send, self._read, again=_again(asked))
        return response if digest is None else replace(response, output=[_message(digest)])

    def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        run, asked = running.get(), _by_name(given, named)
        stream: AsyncIterator[Any]
        stream = self.inner.stream_response(**asked) if run is None else self._streamed(run, asked)
        return stream

    async def _streamed(self, run: Run, asked: dict[str, Any]) -> AsyncGenerator[Any, None]:
        async def send(choice: Any) -> AsyncGenerator[Any, None]:
            done, late, last = [], [], None
            async with aclosing(self.inner.stream_response(**_chosen(asked, choice))) as events:
                async for event in events:
                    if isinstance(event, ResponseCompletedEvent):
                        last = event
                    elif run.asking.off and event.type not in _SPEAKS:
                        # It may have to be asked anew: what it calls is not passed on before.
                        late.append(event)
                    else:
                        yield event
                    if isinstance(event, ResponseOutputItemDoneEvent):
                        done.append(event.item)
            if last is not None:
                # Some endpoints leave the output of the last event empty.
                last.response.output = last.response.output or done
                yield Last((last, late))

        read = lambda said: self._read(said[0].response)  # noqa: E731
        end: list[Any] = []
        async with aclosing(run.asking.stream(_begun(run, asked), send, read, again=_again(asked))) as events:
            async for event in events:
                if isinstance(event, Last):
                    (last, late), digest = event.response
                    end = [*late, last] if digest is None else _told(digest, last)
                else:
                    yield event
        # The host leaves here, at the last event.
        for event in end:
            yield event

    def _read(self, response: Any) -> tuple[str, int, dict[str, Any]]:
        calls = [item for item in response.output if _is_call(item)]
        texts = [ItemHelpers.extract_text(item) or ItemHelpers.extract_refusal(item) or "" for item in response.output]
        text = "".join(texts)
        if not text and any(item.type not in ("message", "reasoning") for item in response.output):
            text = "(what the provider did itself)"
        used = response.usage if response.usage is not None and response.usage.total_tokens else None
        name = getattr(self.inner, "model", None)
        return text, len(calls), {"model": name if isinstance(name, str) else "", "usage": used}


def _by_name(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """
    The arguments of a request, which the host says by place in one way of asking and by name in the other.
    """
    asked = _PARAMETERS.bind(None, *given, **named).arguments
    return {name: value for name, value in asked.items() if name != "self"}


def _begun(run: Run, asked: dict[str, Any]) -> str | None:
    for tool in asked["tools"]:
        guard(tool)
    return run.requested(asked)


def _again(asked: dict[str, Any]) -> bool:
    """
    Whether a response may be thrown away. Of a conversation that the server keeps, each of its calls is to be answered.
    """
    return not (asked.get("conversation_id") or asked.get("previous_response_id"))


def _chosen(asked: dict[str, Any], choice: Any) -> dict[str, Any]:
    """
    The request that is *asked*, with the *choice* that the session makes. Without tools an endpoint refuses the key.
    """
    settings = asked["model_settings"]
    own = settings.tool_choice
    kept = own == choice or not asked["tools"] or (choice == "required" and own is not None)
    return asked if kept else {**asked, "model_settings": replace(settings, tool_choice=choice)}


def _is_call(item: Any) -> bool:
    kind: str = item.type
    return kind == "mcp_approval_request" or (kind.endswith("_call") and kind not in _PROVIDERS_OWN)


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
