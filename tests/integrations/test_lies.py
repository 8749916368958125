"""
Servers that lie: each reply comes to the right answer or to the one clear error, over every way to drive the loop.
"""

import json

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, Literal

import pytest

from guardrails import Policy, Registry
from guardrails.errors import ResponseFailed
from guardrails.testing.scripted_openai import Calls, Raw, Reply, Text, Usage, call
from tests.openai_api import CHAT, RESPONSES
from tests.tables import table


pytestmark = pytest.mark.system


HTML: Final = "<!DOCTYPE html>\n<html><body>Please sign in to the proxy.\x07</body></html>" + " " * 400
DEEP: Final = "[" * 100_000 + "]" * 100_000
GONE: Final = object()
ANSWER: Final = Text("It rains.", Usage(10, 2))
CALL: Final = Calls(call("search", {"path": "a"}, id="c1"), usage=Usage(10, 2))

Edit = Callable[[Any], Any]
"""Of the good response of a wire, the bad one."""


def to(*path: Any, value: Any) -> Edit:
    """
    Put *value* at *path*; GONE takes away what is there.
    """

    def edit(body: Any) -> Any:
        made = within = deepcopy(body)
        for step in path[:-1]:
            within = within[step]
        if value is GONE:
            del within[path[-1]]
        else:
            within[path[-1]] = value
        return made

    return edit


def twice(*path: Any) -> Edit:
    """
    Say all that is in the list at *path* twice.
    """

    def edit(body: Any) -> Any:
        made = within = deepcopy(body)
        for step in path:
            within = within[step]
        within += deepcopy(within)
        return made

    return edit


def thinking(body: Any) -> Any:
    """
    Put a thought with a summary of null first.
    """
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": None}
    return {**body, "output": [thought, *body["output"]]}


def instead(value: Any) -> Edit:
    return lambda body: value


@dataclass(frozen=True)
class Fault:
    """
    What comes of a bad reply: `failed` is the one error, which says *says*; `answered` a text; `ran` a call that is run.
    """

    name: str
    outcome: Literal["failed", "answered", "ran"]
    chat: Edit | None
    responses: Edit | None
    reply: Text | Calls = ANSWER
    says: str = ""


def both(name: str, outcome: Any, edit: Edit, **more: Any) -> Fault:
    return Fault(name, outcome, edit, edit, **more)


def choice(name: str, outcome: Any, *path: Any, value: Any, **more: Any) -> Fault:
    return Fault(name, outcome, to("choices", 0, *path, value=value), None, **more)


def output(name: str, outcome: Any, *path: Any, value: Any, **more: Any) -> Fault:
    return Fault(name, outcome, None, to("output", *path, value=value), **more)


def called(name: str, outcome: Any, part: str, value: Any, says: str = "") -> Fault:
    """
    A call whose id, name or arguments are *value*.
    """
    within = [part] if part == "id" else ["function", part]
    chat = to("choices", 0, "message", "tool_calls", 0, *within, value=value)
    return Fault(name, outcome, chat, to("output", 0, "call_id" if part == "id" else part, value=value), CALL, says)


FAULTS: Final = [
    both("html", "failed", instead(HTML), says="Please sign in"),
    both("empty", "failed", instead(""), says="an empty body"),
    both("not UTF-8", "failed", instead(b'{"id": "\xff\xfe"}'), says="HTTP 200"),
    both("a list", "failed", instead([]), says="a list"),
    both("deep nesting", "failed", instead(DEEP), says="[[["),
    both("an error", "failed", instead({"error": {"message": "no such model", "code": "lost"}}), says="lost: no such"),
    both(
        "an error of vLLM", "failed", instead({"object": "error", "message": "too long", "code": 400}), says="400: too"
    ),
    both("an error beside", "failed", to("error", value={"message": "overloaded"}), says="overloaded"),
    both("an error that is null", "answered", to("error", value=None)),
    choice("an error in a choice", "failed", "error", value={"message": "provider died"}, says="provider died"),
    Fault("no choices", "failed", to("choices", value=GONE), None, says="has no `choices`"),
    Fault("a choice of null", "failed", to("choices", value=[None]), None, says="a choice is null"),
    choice("content of a number", "failed", "message", "content", value=7, says="`content` is a number, not text"),
    choice("content in parts", "answered", "message", "content", value=[{"type": "text", "text": "It rains."}]),
    choice(
        "calls as an object", "failed", "message", "tool_calls", value={"id": "c"}, says="`tool_calls` is an object"
    ),
    choice("no function", "failed", "message", "tool_calls", 0, "function", value=GONE, reply=CALL, says="no `name`"),
    choice("no type", "ran", "message", "tool_calls", 0, "type", value=GONE, reply=CALL),
    called("an integer id", "failed", "id", 7, "is a number, not text"),
    called("no id", "ran", "id", GONE),
    called("a null name", "failed", "name", None, "no `name`"),
    called("arguments as an object", "ran", "arguments", {"path": "a"}),
    Fault("a call that comes twice", "ran", twice("choices", 0, "message", "tool_calls"), twice("output"), CALL),
    Fault("no output", "failed", None, to("output", value=GONE), says="no `output`"),
    output("a message without a type", "answered", 0, "type", value=GONE),
    output("a piece of a number", "failed", 0, "content", 0, "text", value=7, says="`text` is a number"),
    Fault("a null summary", "ran", None, thinking, CALL),
    Fault("failed without a reason", "failed", None, to("status", value="failed"), says="is `failed`"),
    both("no usage", "answered", to("usage", value=GONE)),
    both("usage of text", "answered", to("usage", value="12 tokens")),
    both("usage beyond all bounds", "answered", to("usage", value={"prompt_tokens": 10**40, "input_tokens": 10**40})),
]


def sent(wire: str, fault: Fault, *, stream: bool) -> Raw:
    """
    What a server with *fault* sends.
    """
    api: Any = CHAT if wire == "chat" else RESPONSES
    edit = fault.chat if wire == "chat" else fault.responses
    assert edit is not None
    made = edit(api.whole({"model": "m"}, fault.reply, 0))
    if made is HTML:
        return Raw(HTML, "text/html; charset=utf-8")
    if not stream:
        return Raw(made if isinstance(made, (str, bytes)) else json.dumps(made))
    if isinstance(made, bytes):
        return Raw(b"data: " + made + b"\n\n", "text/event-stream")
    text = made if isinstance(made, str) else json.dumps(streamed(wire, made))
    return Raw(f"data: {text}\n\ndata: [DONE]\n\n" if text else "", "text/event-stream")


def streamed(wire: str, made: Any) -> Any:
    """
    *made* as one event that has everything.
    """
    if wire == "responses":
        bare = not isinstance(made, dict) or made.keys() <= {"error", "detail", "object", "message", "code"}
        return made if bare else {"type": "response.completed", "response": made}
    if not isinstance(made, dict) or not isinstance(made.get("choices"), list):
        return made
    return {**made, "choices": [delta_of(choice) for choice in made["choices"]]}


def delta_of(choice: Any) -> Any:
    if not isinstance(choice, dict) or "message" not in choice:
        return choice
    delta = choice["message"]
    calls = delta.get("tool_calls") if isinstance(delta, dict) else None
    if isinstance(calls, list):
        numbered = [{"index": i, **made} if isinstance(made, dict) else made for i, made in enumerate(calls)]
        delta = {**delta, "tool_calls": numbered}
    return {**choice, "message": None, "delta": delta}


UNPRICED: Final = {fault.name for fault in FAULTS if "usage" in fault.name}


@table("fault", FAULTS)
def test_a_reply_comes_to_the_right_answer_or_to_the_one_clear_error(way: Any, serve: Any, fault: Fault) -> None:
    if (fault.chat if way.chat else fault.responses) is None:
        return
    honest = False

    def script(body: Any, n: int) -> Reply:
        last = way.sent(body)[-1]
        answered = last.get("role") == "tool" or last.get("type") == "function_call_output"
        return Text("done") if honest or answered else sent(way.wire, fault, stream=way.stream)

    ran: list[str] = []

    def search(path: str) -> str:
        ran.append(path)
        return "rain"

    tools = Registry([search])
    server, messages = serve(script), [way.user()]
    with Policy(prices={"m": {"input_mtok": 1.0}}).session("lies") as session:
        if fault.outcome == "failed":
            with pytest.raises(ResponseFailed) as raised:
                way(server, session, messages=messages, tools=tools)
            error, said = raised.value, str(raised.value)
            assert fault.says in said
            assert "\n" not in said
            assert "\x07" not in said
            path = "chat/completions" if way.chat else "responses"
            assert (error.url, error.status) == (f"{server.base_url}/{path}", 200)
            assert len((error.body or "").encode()) <= 200
            assert (messages, ran) == ([way.user()], [])
            # A reply that says what it used is priced, and no other is free.
            assert session.ledger.unpriced + bool(session.ledger.cost_usd) > 0
        else:
            result = way(server, session, messages=messages, tools=tools)
            assert (result.answer.startswith("It rains."), result.ended) == (fault.outcome == "answered", "answered")
            assert len(ran) == (1 if fault.outcome == "ran" else 0)
            assert session.ledger.unpriced == (1 if fault.name in UNPRICED else 0)
        honest = True
        # Whatever came, the conversation goes on: `serve` checks that the API would take every request.
        assert way(server, session, messages=[*messages, way.user()], tools=tools).answer == "done"


@table("ids", [("c1", "c1"), ("", ""), ("c1", "c1", "c1"), ("c1", "c1_1_1", "c1"), (None, "call_1_0")])
def test_calls_that_share_an_id_are_answered_each_for_itself(way: Any, serve: Any, ids: tuple[str | None, ...]) -> None:
    def search(path: str) -> str:
        return f"found {path}"

    made = [call("search", {"path": str(n)}, id=id_ or "") for n, id_ in enumerate(ids)]
    server, messages = serve([Calls(*made), Text("done")]), [way.user()]
    with Policy().session("twins") as session:
        assert way(server, session, messages=messages, tools=Registry([search])).answer == "done"
    assert [f"found {n}" in said for n, said in enumerate(way.outputs(messages))] == [True] * len(ids)
    asked, answered = way.ids(messages)
    assert asked == answered
    assert len(set(answered)) == len(ids)
