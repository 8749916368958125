"""
The model requests of one run of agent-framework: tools off when it is time, each response charged, an answer at the end.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from copy import copy
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import Asking, Last, missing


with needs("agent-framework", "this adapter"):
    from agent_framework import ChatContext, ChatMiddleware, ChatResponseUpdate, Content, Message, ResponseStream

if TYPE_CHECKING:
    from guardrails.session.session import Session

LAST: Final = "loop.request_limit"
"""Why a final answer is asked for once the host's own limits have turned tools off."""
UNSAID: Final = frozenset({"text", "text_reasoning", "usage", "function_call", "function_result"})
"""Kinds of content that answer nothing, or whose text is looked at."""


class ModelSteps(ChatMiddleware):
    """
    The requests of one run in its *session*.
    """

    def __init__(self, session: "Session") -> None:
        self.session = session
        self._asking = Asking(session)
        self._run, self._taken = uuid4().hex, 0
        self._free = False
        """Tools were on for a request of this run."""
        self._missing: dict[str, Envelope] = {}
        """Of calls of tools that do not exist, what the model is to read."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """
        Ask the model, and ask once more if it does not answer. The digest is the answer if the model gives none.
        """
        given = context.options or {}
        self._answer_missing(context)
        choice = given.get("tool_choice")
        mode = choice.get("mode") if isinstance(choice, Mapping) else choice
        if mode == "none" and self._free:
            # The host has reached a limit of its own, and runs no call any more.
            self._asking.final.force(LAST)
        self._free = self._free or mode != "none"

        async def send(chosen: Any) -> Any:
            kept = chosen == mode or not given.get("tools")
            context.options = given if kept else {**given, "tool_choice": chosen}
            await call_next()
            return context.result

        if not context.stream:
            response, digest = await self._asking.respond(mode, send, self._read)
            context.result = await self._last(context, response, digest)
            return
        made: list[Any] = []

        async def sent(chosen: Any) -> AsyncGenerator[Any, None]:
            late: list[Any] = []
            stream = await send(chosen)
            async for update in stream:
                calls = [one for one in update.contents if is_call(one)] if self._asking.off else []
                if calls:
                    # It may be asked anew: what it calls is not passed on before.
                    update.contents = [one for one in update.contents if not is_call(one)]
                    late.append(copy(update))
                    late[-1].contents = calls
                yield update
            yield Last((await stream.get_final_response(), late))

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            end: list[Any] = []
            async with aclosing(self._asking.stream(mode, sent, lambda said: self._read(said[0]))) as events:
                async for event in events:
                    if not isinstance(event, Last):
                        yield event
                        continue
                    (response, late), digest = event.response
                    made.append(await self._last(context, response, digest))
                    end = late if digest is None else [_update(response, digest)]
            for update in end:
                yield update

        context.result = ResponseStream(updates(), finalizer=lambda _: made[0])

    def _read(self, response: Any) -> tuple[str, int, dict[str, Any]]:
        contents = [one for message in response.messages for one in message.contents]
        says = response.continuation_token is not None or any(one.type not in UNSAID for one in contents)
        self._taken += 1
        # A client of one's own may give all of its responses the same id.
        key = f"{self._run}:{self._taken}:{response.response_id or ''}"
        told = {"model": response.model or "", "usage": response.usage_details, "key": key}
        return response.text or ("-" if says else ""), sum(map(is_call, contents)), told

    async def _last(self, context: ChatContext, response: Any, digest: str | None) -> Any:
        """
        *response* as the host goes on with it. The session hears of calls that the host answers itself.
        """
        if digest is not None:
            response.messages = [Message("assistant", [Content.from_text(digest)])]
            response.finish_reason = "stop"
            return response
        more = getattr(context.client, "function_invocation_configuration", {}).get("additional_tools") or ()
        tools = {getattr(tool, "name", None) for tool in (*((context.options or {}).get("tools") or ()), *more)}
        for message in response.messages:
            for call in message.contents:
                if is_call(call) and call.name not in tools:
                    told = self.session.acall(call.name or "", call.arguments or {}, missing, id=call.call_id or None)
                    self._missing[call.call_id or ""] = await told
        return response

    def _answer_missing(self, context: ChatContext) -> None:
        for message in context.messages[-1:] if self._missing else ():
            for one in message.contents:
                if one.type == "function_result" and one.call_id in self._missing:
                    text = self._missing[one.call_id].to_json()
                    one.result, one.items = text, [Content.from_text(text)]
        self._missing.clear()


def is_call(content: Content) -> bool:
    """
    Returns whether *content* is a call that the host is to run.
    """
    return content.type == "function_call" and not (content.informational_only or content.hosted)


def _update(response: Any, text: str) -> ChatResponseUpdate:
    return ChatResponseUpdate(
        contents=[Content.from_text(text)], role="assistant", response_id=response.response_id, finish_reason="stop"
    )
