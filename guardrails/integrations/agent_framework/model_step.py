"""
The model requests of one run of agent-framework: tools off when it is time, each response charged, an answer at the end.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import Asking


with needs("agent-framework", "this adapter"):
    from agent_framework import (
        ChatContext,
        ChatMiddleware,
        ChatResponseUpdate,
        Content,
        Message,
        ResponseStream,
        add_usage_details,
    )

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
        self.asking = Asking(session)
        self._run = uuid4().hex
        self._taken = 0
        self.refuses = False
        """No call of the latest response is run."""
        self._free = False
        """Tools were on for a request of this run."""
        self._limited = False
        """The host has turned them off itself, and runs no call any more."""
        self._options: Mapping[str, Any] | None = None
        self._missing: dict[str, Envelope] = {}
        """Of calls of tools that do not exist, what the model is to read."""
        self._usage: Any = None
        """What responses used that the model is asked again after."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """
        Ask the model, and ask once more if it does not answer. The digest is the answer if the model gives none.
        """
        self._options, self._usage = context.options or {}, None
        self._answer_missing(context)
        await self._ask(context)
        if context.stream:
            await call_next()
            made: list[Any] = []
            updates = self._updates(context, call_next, context.result, made)
            context.result = ResponseStream(updates, finalizer=lambda _: made[0])
            return
        while True:
            try:
                await call_next()
            except BaseException:
                await self.session.ledger.off_loop(self.asking.failed)
                raise
            if await self._take(context, context.result):
                return
            await self._ask(context)

    async def _updates(
        self, context: ChatContext, call_next: Callable[[], Awaitable[None]], stream: Any, made: list[Any]
    ) -> AsyncIterator[ChatResponseUpdate]:
        """
        The updates of a response as they come; calls at the end only, once nobody may know whether they are run.
        """
        while True:
            held: list[ChatResponseUpdate] = []
            try:
                async for update in stream:
                    calls = [one for one in update.contents if is_call(one)] if self.asking.off else []
                    said = update
                    if calls:
                        said, late = copy(update), copy(update)
                        said.contents = [one for one in update.contents if not is_call(one)]
                        late.contents = calls
                        held.append(late)
                    yield said
                response = await stream.get_final_response()
            except BaseException:
                await self.session.ledger.off_loop(self.asking.failed)
                raise
            if await self._take(context, response):
                break
            await self._ask(context)
            await call_next()
            stream = context.result
        if self.refuses:
            for update in held:
                yield update
        elif self.asking.final.ended == "digest":
            yield ChatResponseUpdate(
                contents=[Content.from_text(response.text)],
                role="assistant",
                response_id=response.response_id,
                finish_reason="stop",
            )
        made.append(response)

    async def _ask(self, context: ChatContext) -> None:
        asked = self._options or {}
        requested = asked.get("tool_choice")
        mode = requested.get("mode") if isinstance(requested, Mapping) else requested
        self._limited = mode == "none" and self._free
        self._free = self._free or mode != "none"
        chosen = await self.session.ledger.off_loop(self.asking.ask, mode)
        if self._limited:
            self.asking.final.force(LAST)
        if chosen != mode and asked.get("tools"):
            context.options = {**asked, "tool_choice": chosen}
        else:
            context.options = asked

    async def _take(self, context: ChatContext, response: Any) -> bool:
        """
        Charge *response*; whether the host goes on with it. It is not if the model is to be asked again at once.
        """
        if response.continuation_token is not None:
            # It is still made: the host's user asks for it again, by the same id.
            await self.session.ledger.off_loop(self.asking.failed)
            return True
        contents = [one for message in response.messages for one in message.contents]
        calls = [one for one in contents if is_call(one)]
        says = any(one.type not in UNSAID for one in contents)
        self._taken += 1
        meaning = await self.session.ledger.off_loop(
            self.asking.take,
            response.text or ("-" if says else ""),
            calls,
            model=response.model or "",
            usage=response.usage_details,
            # A client of one's own may give all of its responses the same id.
            key=f"{self._run}:{self._taken}:{response.response_id or ''}",
        )
        tools = _tools(context)
        if meaning == "run":
            for call in calls:
                if call.name not in tools:
                    await self._miss(call)
        # What the host answers itself stays well-formed for services that keep the conversation.
        answers = bool(calls) and not self._limited and not any(_pauses(tools.get(call.name)) for call in calls)
        self.refuses = meaning == "again" and answers
        self._usage = add_usage_details(self._usage, response.usage_details)
        if meaning == "again" and not answers:
            return False
        response.usage_details = self._usage
        if meaning == "digest":
            digest = await self.session.ledger.off_loop(lambda: self.asking.digest)
            response.messages = [Message("assistant", [Content.from_text(digest)])]
            response.finish_reason = "stop"
        return True

    async def _miss(self, call: Content) -> None:
        """
        Tell the session of the *call* of a tool that does not exist, which the host answers itself.
        """
        name, made = call.name or "", call.call_id or None

        async def missing(_: str, __: Any) -> Failed:
            return Failed(f"`{name}` is not there.", error_type="tool_missing")

        envelope = await self.session.acall(name, call.arguments or {}, missing, id=made)
        self._missing[call.call_id or ""] = envelope

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


def _pauses(tool: Any) -> bool:
    """
    Returns whether the host asks somebody else about a call of *tool* before any middleware sees it.
    """
    mode = getattr(tool, "approval_mode", None)
    return mode == "always_require" or bool(getattr(tool, "declaration_only", False))


def _tools(context: ChatContext) -> dict[str | None, Any]:
    """
    The tools of a request by name, and those that the host only names to its user.
    """
    more = getattr(context.client, "function_invocation_configuration", {}).get("additional_tools") or ()
    offered = (context.options or {}).get("tools") or ()
    return {getattr(tool, "name", None): tool for tool in (*offered, *more)}
