"""
A guarded agent loop through the real openai client, over chat.completions or Responses: sync and async, streamed or not.

    with policy.session("trip-42") as session:
        result = run(client, session, model="gpt-5-mini", messages=messages, tools=[search_hotels])
        print(result.answer)
"""

from typing import TYPE_CHECKING, Any

from guardrails.integrations.hosting import sync_result
from guardrails.session.session import Session

from .loop import Loop, LoopResult


if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["arun", "run"]


def run(client: "OpenAI", session: Session, **settings: Any) -> LoopResult:
    """
    Let *model* call *tools* through *session* until it answers.

    * *messages*, if it is a list, grows in place by `append` and `extend`. After any failure it holds the conversation
      so far, every call answered. Text is one user message. With `wire="responses"` these are input items.
    * *tools* are a `Registry`, or a list of functions, registries, `Tool`s and entries as the wire has them. Entries and
      `Tool`s are run by `execute(tool, arguments)`. The model can run no other tool.
    * *wire* is "chat" or "responses".
    * *tool_choice*, in the wire's form, holds for the first request if it forces a tool; *strategy*
      `(call_count, turn_count) -> tool_choice` decides turn by turn.
    * *stream*: *on_text* gets the model's text as it comes, a digest too.
    * *compact* is given the messages before each request and returns those to send. If those differ, the session's
      digest is put in front of them, unless *digest* is False.
    * *max_tool_iterations*, by default 20, below 1 as 1; then the final answer is forced, or LoopLimitExceeded raised with
      `on_limit="raise"`.
    * All other settings go into every request.

    Raises what the client raises (after its own retries), and what *on_text* raises once the response is in *messages*.
    ResponseFailed if the server says that a response failed, sends a reply of another form, or cuts its stream twice.
    TypeError if a tool cannot be run or has no name of its own. A stream that is cut is asked for once more, and
    nothing of it is run or kept; *on_text* gets its text again.
    """
    return sync_result(Loop(client, session, blocking=True, **settings).result())


async def arun(client: "AsyncOpenAI", session: Session, **settings: Any) -> LoopResult:
    """
    The same, awaited. The calls of one turn run at once, at most *parallel* of them (None: all); *execute*, functions,
    *on_text* and *compact* may be asynchronous.
    """
    return await Loop(client, session, blocking=False, **settings).result()
