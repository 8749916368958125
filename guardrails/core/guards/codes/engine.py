"""
The codes that no guard says: of the session itself, and of loops that run it.
"""

from typing import Final

from .explained import AGAIN, Explained


_FINISH: Final = "This call was not made: the final answer was asked for. Write the final answer from what you have."
_REACHED: Final = "Tool call limit reached ($limit). Stopping tool loop. No more turns with tool calls (`{}`). Write the final answer from what you have."


def _loop(name: str, means: str, instead: str, page: str, told: str = _FINISH) -> Explained:
    code = f"loop.{name}"
    return Explained(
        code=code,
        when="the loop ends; the session does not",
        means=f"{means} The loop asks for the final answer with tools off.",
        told=told.format(code),
        retry="In the next run of the loop.",
        instead=instead,
        page=page,
        kind="end",
        status="limit_reached",
    )


def _endpoint(name: str, means: str, instead: str) -> Explained:
    return Explained(
        code=f"endpoint.{name}",
        when=f"`guardrails run` ends: {means[0].lower()}{means[1:].rstrip('.')}",
        means=means,
        told="Nothing: there is no model to be told.",
        retry="`guardrails run --resume ID` goes on from there.",
        instead=instead,
        page="run.md",
        kind="end",
        status="error",
    )


ENGINE: Final = (
    Explained(
        code="session.closed",
        when="a call of a sub-agent whose session was closed",
        means="The session of this sub-agent (`session.child`) was closed, and its share went back. It makes no call any more.",
        told="This session is closed. Write the final answer from what you have.",
        retry=AGAIN,
        instead="Open another child, or close it later.",
        page="guards/README.md",
        status="limit_reached",
    ),
    Explained(
        code="deny_all.on",
        when="somebody has stopped all calls of all processes",
        means="`guardrails policy deny-all REASON` is in force on this machine: every call is refused, under any policy.",
        told="All tool calls are stopped: $reason. It was not called. Make no further call. Answer with what you have, and tell the user.",
        retry="Yes, once `guardrails policy deny-all --off` was said.",
        instead="`guardrails policy deny-all --off` lets calls through again.",
        page="reload.md",
    ),
    Explained(
        code="store.error",
        when="the store of the session cannot be reached",
        means="The state of the session cannot be read or written, so that no limit could be held. The call was not made.",
        told="The session's state cannot be reached, so the call was not made. Try again later, or tell the user.",
        retry="Yes, once the store answers. It is no strike.",
        settings=("on_error",),
        off="on_error: allow",
        page="stores.md",
    ),
    Explained(
        code="clock.error",
        when="the clock of the session fails",
        means="The clock that the session was given raised an error, so that no time is known. The call was not made.",
        told="The session's clock failed, so the call was not made. Try again later, or tell the user.",
        retry="Yes, once the clock works. It is no strike.",
        settings=("on_error",),
        off="on_error: allow",
        page="stores.md",
    ),
    Explained(
        code="store.unreadable",
        when="the kept state is damaged, or of a newer version",
        means="The state of this session is in the store, and this version of the library cannot read it.",
        told="The call was not made: the state of $whose $reason. Trying again does not help. Tell the user, who can upgrade the library or drop that state.",
        retry=AGAIN,
        instead="Upgrade the library in all processes, or drop that state: `guardrails store --help`.",
        page="upgrades.md",
    ),
    _loop(
        "max_tool_iterations",
        "The agent loop has asked the model as often as `max_tool_iterations` says.",
        "Give the loop more: `max_tool_iterations=40`.",
        "agent-loop.md",
        _REACHED,
    ),
    _loop(
        "no_answer",
        "The model answered with neither text nor calls that may run.",
        "Look at the model's own limit of tokens for an answer.",
        "agent-loop.md",
    ),
    _loop(
        "max_turns",
        "The OpenAI Agents SDK has reached the run's own `max_turns`.",
        "Give the run more: `max_turns=40`.",
        "hosts/openai-agents.md",
    ),
    _loop(
        "request_limit",
        "The host's own limit of model requests leaves one request, or none.",
        "Raise the limit of the host: `UsageLimits(request_limit=...)` of Pydantic AI, or that of the Agent Framework.",
        "hosts/pydantic-ai.md",
    ),
    _loop(
        "recursion_limit",
        "Strands makes each cycle inside the one before, and Python's recursion limit is near.",
        "Let the run end sooner, or raise `sys.setrecursionlimit`.",
        "hosts/strands.md",
    ),
    _loop(
        "hand_overs",
        "An agent of Google ADK handed over to the same other one again and again.",
        "Say in the agents' instructions who does what.",
        "hosts/google-adk.md",
    ),
    _loop(
        "repeated_call",
        "The same call had the same result again and again; once more, and CrewAI would end the run by an exception.",
        "Declare a tool that waits as `polling: true`, and have it say when to ask again.",
        "hosts/crewai.md",
    ),
    _loop(
        "no_tools",
        "The model called tools though CrewAI had offered it none.",
        "Give the agent the tools that its instructions speak of.",
        "hosts/crewai.md",
    ),
    _endpoint(
        "unreachable", "The endpoint of the model cannot be reached.", "Check `--base-url`, and that the server runs."
    ),
    _endpoint(
        "refused",
        "The endpoint refused the request; the message has its HTTP status.",
        "Check the key in `OPENAI_API_KEY` and the name of the model.",
    ),
    _endpoint(
        "failed", "The endpoint failed, or its response was cut off.", "See the message; it has what the server said."
    ),
    Explained(
        code="sandbox.unavailable",
        when="commands cannot be confined here as was asked, so none is run",
        means="A sandbox was asked for, and this machine can give none of that kind. Nothing was started.",
        told="Commands cannot be run here: do what you can with other tools. The user can make a sandbox work (`guardrails doctor` says how), or go without one (`sandbox: none`).",
        retry=AGAIN,
        instead="`guardrails doctor` says what blocks it. `--sandbox none` goes without.",
        page="sandbox.md",
    ),
)


def guard_failed(name: str, page: str = "guards/README.md") -> Explained:
    """
    Returns the explanation of the failure of the guard *name*, one of a person's own too.
    """
    return Explained(
        code=f"{name}.error",
        when="the guard itself failed; `on_error` decides",
        means=f"The guard `{name}` raised an exception. That is no refusal of its own: `on_error: deny` stops the call, `allow` lets it run.",
        told=f"The guard `{name}` failed, so the call was not made. Use another tool, or tell the user.",
        retry="Perhaps: it depends on what failed. It is no strike.",
        settings=("on_error",),
        off="on_error: allow",
        instead="The log and `guard_errors` of the record have the exception.",
        page=page,
    )
