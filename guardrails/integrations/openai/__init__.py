"""
A guarded agent loop through the real openai client, over chat.completions or Responses: sync and async, streamed or not.

    with policy.session("trip-42") as session:
        result = run(client, session, model="gpt-5-mini", messages=messages, tools=[search_hotels])
        print(result.answer)

Both drivers ask `Conversation` what to do; they differ only in how they wait.
"""

import asyncio
import contextvars
import inspect

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.session.session import Session

from .answers import Answers
from .conversation import Conversation
from .loop import LoopResult, RequestedCall
from .responses import Responses
from .settings import with_settings_of


if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["Responses", "arun", "run"]


@with_settings_of(Conversation)
def run(client: "OpenAI", session: Session, **settings: Any) -> LoopResult:
    """
    Let *model* call *tools* through *session* until it answers.

    * *messages*, if it is a list, grows in place by `append` and `extend`. After any failure it holds the conversation
      so far, every call answered. Text is one user message. With `wire="responses"` these are input items.
    * *tools* are a `Registry`, or a list of functions, registries, `Tool`s and entries of either wire. Entries and
      `Tool`s are run by `execute(tool, arguments)`. The model can run no other tool.
    * *wire* is "chat", "responses", or `Responses(chained=True)`, which goes on from the response before.
    * *tool_choice*, in either wire's form, holds for the first request if it forces a tool; *strategy*
      `(call_count, turn_count) -> tool_choice` decides turn by turn.
    * *on_text* gets the model's text as it comes, a digest too; *on_usage* the `Usage` of each response that tells it.
    * *parallel* threads run the calls of one turn (None: one).
    * *compact* is given the messages in use before each request and returns those to go on with. If those differ, the
      session's digest is put back in front of them, unless *digest* is False.
    * *max_tool_iterations*, at least 1; then the final answer is forced, or LoopLimitExceeded raised with
      `on_limit="raise"`.
    * All other settings go into every request.

    Raises what the client raises (after its own retries), and what *on_text* raises once the response is in *messages*.
    ResponseFailed if the server says that a response failed, sends a reply of another form, or cuts its stream twice.
    TypeError if a tool cannot be run or has no name of its own. A stream that is cut is asked for once more, and
    nothing of it is run or kept; *on_text* gets its text again.
    """
    chat = Conversation.blocking(session, **settings)
    create = chat.create(client)

    def guarded(call: RequestedCall) -> Envelope:
        return chat.tools.session.call(call.tool, call.arguments, chat.tools.executor(call.tool), id=call.id)

    while chat.due():
        if chat.compact is not None:
            chat.compacted(chat.compact(chat.used()))
        reply = chat.reply()
        with chat.asking():
            heard = chat.heard(create(**chat.request()))
        with chat.receiving(reply, heard), heard.made if chat.stream else nullcontext():
            if chat.stream:
                for event in heard.made:
                    chat.listener.say(reply.add(event))
            else:
                chat.listener.say(reply.read(heard.whole()))
            reply.ended(closed=heard.closed if chat.stream else None)

        with chat.answering(reply, heard) as answers:
            chat.listener.check()
            for position, envelope in _each(guarded, answers.calls, chat.parallel or 1):
                answers.give(position, envelope)

    result = chat.result()
    if result.ended == "digest":
        chat.listener.say(result.answer)
        chat.listener.check()
    return result


@with_settings_of(Conversation)
async def arun(client: "AsyncOpenAI", session: Session, **settings: Any) -> LoopResult:
    """
    The same, awaited. The calls of one turn run at once, at most *parallel* of them (None: all); *execute*, functions,
    *on_text* and *compact* may be asynchronous.
    """
    chat = Conversation(session, **settings)
    create = chat.create(client)
    room = asyncio.Semaphore(chat.parallel) if chat.parallel else nullcontext()

    async def guarded(call: RequestedCall, answers: Answers, position: int) -> None:
        tools = chat.tools
        async with room:
            answers.give(
                position, await tools.session.acall(call.tool, call.arguments, tools.executor(call.tool), id=call.id)
            )

    while chat.due():
        if chat.compact is not None:
            kept = chat.compact(chat.used())
            chat.compacted(await kept if inspect.isawaitable(kept) else kept)
        reply = chat.reply()
        with chat.asking():
            heard = chat.heard(await create(**chat.request()))
        with chat.receiving(reply, heard):
            async with heard.made if chat.stream else nullcontext():
                if chat.stream:
                    async for event in heard.made:
                        await chat.listener.asay(reply.add(event))
                else:
                    await chat.listener.asay(reply.read(heard.whole()))
                reply.ended(closed=heard.closed if chat.stream else None)

        with chat.answering(reply, heard) as answers:
            chat.listener.check()
            await _gathered([guarded(call, answers, position) for position, call in enumerate(answers.calls)])

    result = chat.result()
    if result.ended == "digest":
        await chat.listener.asay(result.answer)
        chat.listener.check()
    return result


def _each(
    guarded: Callable[[RequestedCall], Envelope], calls: Sequence[RequestedCall], parallel: int
) -> Iterator[tuple[int, Envelope]]:
    if parallel <= 1 or len(calls) <= 1:
        yield from enumerate(map(guarded, calls))
        return
    with ThreadPoolExecutor(min(parallel, len(calls)), "guardrails") as pool:
        # Each thread works in a copy of the caller's context, so that tracing and the like go on.
        waiting = [pool.submit(contextvars.copy_context().run, guarded, call) for call in calls]
        for position, future in enumerate(waiting):
            yield position, future.result()


async def _gathered(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """
    Run all at once. If one cannot go on, none does, and its exception is raised as it is.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(call)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
