"""
A guarded agent loop over chat.completions, through the real openai client: sync and async, streamed or not.

    with policy.session("trip-42") as session:
        result = run(client, session, model="gpt-5-mini", messages=messages, tools=[search_hotels])
        print(result.answer)

Both loops ask `Conversation` what to do; they differ only in how they wait.
"""

import asyncio
import contextvars

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..calls import Execute
from ..envelope import Envelope
from ..loop import MAX_TOOL_ITERATIONS, Loop, LoopResult, OnLimit, RequestedCall
from ..session import Session
from ..turns import Strategy, ToolChoice
from .chat_completions import Response
from .conversation import Conversation
from .listener import Listener
from .offered import Offered, Tools


if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


def run(
    client: "OpenAI",
    session: Session,
    *,
    model: str,
    messages: Iterable[Any],
    tools: Iterable[Offered] = (),
    execute: Execute | None = None,
    tool_choice: ToolChoice = None,
    strategy: Strategy | None = None,
    stream: bool = False,
    on_text: Callable[[str], object] | None = None,
    max_tool_iterations: int = MAX_TOOL_ITERATIONS,
    on_limit: OnLimit = "answer",
    parallel: int = 1,
    **request_options: Any,
) -> LoopResult:
    """
    Let *model* call *tools* through *session* until it answers.

    *messages*, where it is a list, grows in place: whatever happens, it holds the conversation so far, every call
    answered. *tools* are entries of the wire or `Tool`s, run by `execute(tool, arguments)`, or functions; no others are
    run, whatever the model calls. *on_text* gets the model's text as it comes, a digest too. *parallel* threads run the
    calls of one turn. *request_options* go into every request.

    Raises what the client raises (after its own retries), what *on_text* raises once the response is in *messages*,
    TypeError where a tool cannot be run or has no name of its own, LoopLimitExceeded with `on_limit="raise"`.
    """
    loop = Loop(max_tool_iterations=max_tool_iterations, on_limit=on_limit)
    offered = Tools(session, tools, execute)
    if offered.asynchronous:
        raise TypeError(f"`{offered.asynchronous[0]}` is asynchronous: use `arun`")
    chat = Conversation(
        loop,
        session,
        offered,
        model=model,
        messages=messages,
        tool_choice=tool_choice,
        strategy=strategy,
        options=request_options,
    )
    create: Any = client.chat.completions.create
    listener = Listener(on_text)

    def guarded(call: RequestedCall) -> Envelope:
        return offered.session.call(call.tool, call.arguments, offered.executor(call.tool), id=call.id)

    while loop.next():
        response = Response()
        made = create(**chat.request(stream=stream))
        if stream:
            with made:
                for chunk in made:
                    listener.say(response.add(chunk))
        else:
            listener.say(response.read(made))

        with chat.answering(response) as (calls, answers):
            listener.check()
            for position, envelope in _each(guarded, calls, parallel):
                answers[position] = envelope.to_json()

    result = chat.result()
    if result.ended == "digest":
        listener.say(result.answer)
        listener.check()
    return result


async def arun(
    client: "AsyncOpenAI",
    session: Session,
    *,
    model: str,
    messages: Iterable[Any],
    tools: Iterable[Offered] = (),
    execute: Execute | None = None,
    tool_choice: ToolChoice = None,
    strategy: Strategy | None = None,
    stream: bool = False,
    on_text: Callable[[str], object] | None = None,
    max_tool_iterations: int = MAX_TOOL_ITERATIONS,
    on_limit: OnLimit = "answer",
    parallel: int | None = None,
    **request_options: Any,
) -> LoopResult:
    """
    The same, awaited. The calls of one turn run at once, at most *parallel* of them (None: all); *execute*, functions
    and *on_text* may be asynchronous.
    """
    loop = Loop(max_tool_iterations=max_tool_iterations, on_limit=on_limit)
    offered = Tools(session, tools, execute)
    chat = Conversation(
        loop,
        session,
        offered,
        model=model,
        messages=messages,
        tool_choice=tool_choice,
        strategy=strategy,
        options=request_options,
    )
    create: Any = client.chat.completions.create
    listener = Listener(on_text)
    room = asyncio.Semaphore(parallel) if parallel else nullcontext()

    async def guarded(call: RequestedCall, answers: dict[int, str], position: int) -> None:
        async with room:
            envelope = await offered.session.acall(call.tool, call.arguments, offered.executor(call.tool), id=call.id)
        answers[position] = envelope.to_json()

    while loop.next():
        response = Response()
        made = await create(**chat.request(stream=stream))
        if stream:
            async with made:
                async for chunk in made:
                    await listener.asay(response.add(chunk))
        else:
            await listener.asay(response.read(made))

        with chat.answering(response) as (calls, answers):
            listener.check()
            await _gathered([guarded(call, answers, position) for position, call in enumerate(calls)])

    result = chat.result()
    if result.ended == "digest":
        await listener.asay(result.answer)
        listener.check()
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
    Run all at once; where one cannot go on, none does, and its exception is raised as it is.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(call)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
