"""
Servers that lie: each reply comes to the right answer or to the one clear error, over every way to drive the loop.
"""

import json

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pytest

from openai.resources.chat.completions import AsyncCompletions, Completions
from openai.resources.responses import AsyncResponses, Responses

from guardrails import Policy, Registry, ResponseFailed
from guardrails.testing import chat_completions, responses
from guardrails.testing.scripted_openai import Calls, Raw, Reply, Text, Usage, call


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


def thinking(summary: Any) -> Edit:
    """
    Put a thought with *summary* first.
    """
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"} | (
        {} if summary is GONE else {"summary": summary}
    )
    return lambda body: {**body, "output": [thought, *body["output"]]}


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
    streams: tuple[bool, ...] = field(default=(False, True))


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
    # No JSON, or no response
    both("html", "failed", instead(HTML), says="Please sign in"),
    both("text", "failed", instead("upstream timed out"), says="upstream timed out"),
    both("no JSON", "failed", instead('{"id": '), says='{"id":'),
    both("empty", "failed", instead(""), says="an empty body"),
    both("not UTF-8", "failed", instead(b'{"id": "\xff\xfe"}'), says="HTTP 200"),
    both("a list", "failed", instead([]), says="a list"),
    both("a number", "failed", instead("7"), says="7"),
    both("null", "failed", instead("null"), says="null"),
    both("an empty object", "failed", instead({})),
    both("deep nesting", "failed", instead(DEEP), says="[[["),
    both("a huge number", "failed", instead('{"id": ' + "9" * 5000 + "}"), says="999"),
    # An error in place of a response
    both(
        "an error",
        "failed",
        instead({"error": {"message": "no such model", "code": "lost"}}),
        says="lost: no such model",
    ),
    both("an error as text", "failed", instead({"error": "out of memory"}), says="out of memory"),
    both("an error of a number", "failed", instead({"error": {"message": 7, "code": 502}}), says="502: the server"),
    both(
        "an error of vLLM",
        "failed",
        instead({"object": "error", "message": "too long", "code": 400}),
        says="400: too long",
    ),
    both("an error beside", "failed", to("error", value={"message": "overloaded"}), says="overloaded"),
    both("a detail", "failed", instead({"detail": "Not Found"}), says="Not Found"),
    both("an error that is null", "answered", to("error", value=None)),
    both("an error that is empty", "answered", to("error", value={})),
    # The client itself takes it for an error in a chunk of a stream.
    both("an error without a word", "answered", to("error", value={"code": "", "message": ""}), streams=(False,)),
    both("an error in other words", "failed", to("error", value={"reason": "it rains"}), says="it rains"),
    choice("an error in a choice", "failed", "error", value={"message": "provider died"}, says="provider died"),
    choice("finished by an error", "failed", "finish_reason", value="error", says="with an error"),
    # The choices
    Fault("no choices", "failed", to("choices", value=GONE), None, says="has no `choices`"),
    Fault("empty choices", "failed", to("choices", value=[]), None, says="has no `choices`"),
    Fault("null choices", "failed", to("choices", value=None), None, says="has no `choices`"),
    Fault("choices as an object", "failed", to("choices", value={"0": {}}), None, says="`choices` is an object"),
    Fault("choices as text", "failed", to("choices", value="It rains."), None, says="`choices` is text"),
    Fault("a choice of a number", "failed", to("choices", value=[7]), None, says="a choice is a number"),
    Fault("a choice of null", "failed", to("choices", value=[None]), None, says="a choice is null"),
    choice("a message of text", "failed", "message", value="It rains."),
    choice("a message of a list", "failed", "message", value=["It rains."]),
    choice("a null message", "failed", "message", value=None, streams=(False,), says="`message` is null"),
    choice("no message", "failed", "message", value=GONE, streams=(False,)),
    choice("a finish reason of a number", "answered", "finish_reason", value=7),
    # The text
    choice("content of a number", "failed", "message", "content", value=7, says="`content` is a number, not text"),
    choice("content of an object", "failed", "message", "content", value={"text": "x"}, says="`content` is an object"),
    choice("content of true", "failed", "message", "content", value=True),
    choice("content of numbers", "failed", "message", "content", value=[7]),
    choice(
        "text of a number",
        "failed",
        "message",
        "content",
        value=[{"type": "text", "text": 7}],
        says="`text` is a number",
    ),
    choice("content in parts", "answered", "message", "content", value=[{"type": "text", "text": "It rains."}]),
    choice("content in texts", "answered", "message", "content", value=["It ", "rains."]),
    choice("a refusal of a number", "failed", "message", "refusal", value=7),
    choice("half a surrogate pair", "answered", "message", "content", value="It rains.\ud83d"),
    # The calls
    choice("null calls", "answered", "message", "tool_calls", value=None),
    choice("empty calls", "answered", "message", "tool_calls", value=[]),
    choice(
        "calls as an object", "failed", "message", "tool_calls", value={"id": "c"}, says="`tool_calls` is an object"
    ),
    choice("calls as text", "failed", "message", "tool_calls", value="search"),
    choice("a call of text", "failed", "message", "tool_calls", value=["search"]),
    choice("a call of null", "failed", "message", "tool_calls", value=[None]),
    choice("a function of text", "failed", "message", "tool_calls", 0, "function", value="search", reply=CALL),
    choice("no function", "failed", "message", "tool_calls", 0, "function", value=GONE, reply=CALL, says="no `name`"),
    choice("no type", "ran", "message", "tool_calls", 0, "type", value=GONE, reply=CALL),
    choice("a null type", "ran", "message", "tool_calls", 0, "type", value=None, reply=CALL),
    choice("a type of a number", "ran", "message", "tool_calls", 0, "type", value=7, reply=CALL),
    choice("a field that is no number", "failed", "message", "tool_calls", 0, "extra", value=float("nan"), reply=CALL),
    called("an integer id", "failed", "id", 7, "is a number, not text"),
    called("an id of an object", "failed", "id", {}, "is an object, not text"),
    called("no id", "ran", "id", GONE),
    called("a null id", "ran", "id", None),
    called("an empty id", "ran", "id", ""),
    called("half a surrogate pair in an id", "failed", "id", "c\ud83d"),
    called("an integer name", "failed", "name", 7, "`name` is a number, not text"),
    called("a null name", "failed", "name", None, "no `name`"),
    called("an empty name", "failed", "name", "", "no `name`"),
    called("no name", "failed", "name", GONE, "no `name`"),
    called("a name of a list", "failed", "name", ["search"], "`name` is a list"),
    called("arguments as an object", "ran", "arguments", {"path": "a"}),
    called("half a surrogate pair in arguments", "ran", "arguments", '{"path": "a\ud83d"}'),
    Fault("a call that comes twice", "ran", twice("choices", 0, "message", "tool_calls"), twice("output"), CALL),
    # The output
    Fault("no output", "failed", None, to("output", value=GONE), says="no `output`"),
    Fault("null output", "failed", None, to("output", value=None), says="no `output`"),
    Fault("output as an object", "failed", None, to("output", value={"0": {}}), says="`output` is an object"),
    Fault("output as text", "failed", None, to("output", value="It rains."), says="`output` is text"),
    output("an item of text", "failed", 0, value="It rains."),
    output("an item of null", "failed", 0, value=None),
    output("an item without a type", "failed", 0, value={"text": "It rains."}, says="no `type`"),
    output("an item of an integer type", "failed", 0, value={"type": 7}, says="`type` is a number"),
    output("an item of an unknown type", "failed", 0, value={"type": "banana"}, says="`banana`"),
    output("a message without a type", "answered", 0, "type", value=GONE),
    output("a message of another role", "answered", 0, "role", value=7),
    output("a message with an integer id", "failed", 0, "id", value=7, says="`id` is a number"),
    output("a message with an odd status", "answered", 0, "status", value=7),
    output("a message of text", "answered", 0, "content", value="It rains."),
    output("a message of a number", "failed", 0, "content", value=7, says="`content` is a number"),
    output("a message of an object", "failed", 0, "content", value={"text": "It rains."}),
    output("a message of texts", "failed", 0, "content", value=["It rains."], says="a piece of `content` is text"),
    output("a piece of a number", "failed", 0, "content", 0, "text", value=7, says="`text` is a number"),
    output("a piece of an integer type", "failed", 0, "content", 0, "type", value=7, says="`type` is a number"),
    output("a piece with a refusal of a number", "failed", 0, "content", 0, "refusal", value=7),
    output("a summary of a number", "failed", 0, value={"type": "reasoning", "summary": 7}, says="`summary` is a"),
    output(
        "a thought of text", "failed", 0, value={"type": "reasoning", "summary": ["hm"]}, says="a piece of reasoning"
    ),
    Fault("a null summary", "ran", None, thinking(None), CALL),
    Fault("no summary", "ran", None, thinking(GONE), CALL),
    output("a piece without a type", "answered", 0, "content", 0, "type", value=GONE),
    output("no call fields", "failed", 0, value={"type": "function_call"}, says="no `name`"),
    Fault(
        "still queued",
        "failed",
        None,
        lambda b: {**b, "status": "queued", "output": []},
        says="no `output`",
        streams=(False,),
    ),
    Fault("a status of a number", "answered", None, to("status", value=7)),
    Fault("no status", "answered", None, to("status", value=GONE)),
    Fault("incomplete details of text", "answered", None, to("incomplete_details", value="x")),
    Fault("failed without a reason", "failed", None, to("status", value="failed"), says="is `failed`"),
    # The rest
    both("a response id of a number", "answered", to("id", value=7)),
    both("a null response id", "answered", to("id", value=None)),
    both("no usage", "answered", to("usage", value=GONE)),
    both("usage of text", "answered", to("usage", value="12 tokens")),
    both("usage of a number", "answered", to("usage", value=12)),
    both("usage of a list", "answered", to("usage", value=[12])),
    both("usage of an object in itself", "answered", to("usage", value={"usage": {"prompt_tokens": 3}})),
    both("usage of texts", "answered", to("usage", value={"prompt_tokens": "12", "input_tokens": "12"})),
    both("usage below zero", "answered", to("usage", value={"prompt_tokens": -1, "output_tokens": -1})),
    both("usage beyond all bounds", "answered", to("usage", value={"prompt_tokens": 10**40, "input_tokens": 10**40})),
    both(
        "details of text",
        "answered",
        to("usage", value=dict.fromkeys(("prompt_tokens", "input_tokens"), 9) | {"prompt_tokens_details": "x"}),
    ),
]


def sent(wire: str, fault: Fault, *, stream: bool) -> Raw:
    """
    What a server with *fault* sends.
    """
    api: Any = chat_completions if wire == "chat" else responses
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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_reply_comes_to_the_right_answer_or_to_the_one_clear_error(way: Any, serve: Any, fault: Fault) -> None:
    if (fault.chat if way.chat else fault.responses) is None or way.stream not in fault.streams:
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
            assert (error.url, error.status) == (
                f"{server.base_url}/{'chat/completions' if way.chat else 'responses'}",
                200,
            )
            assert len((error.body or "").encode()) <= 200
            assert (messages, ran) == ([way.user()], [])
            # A reply that says what it used is priced, and no other is free.
            assert session.unpriced + bool(session.cost_usd) > 0
        else:
            result = way(server, session, messages=messages, tools=tools)
            assert (result.answer.startswith("It rains."), result.ended) == (fault.outcome == "answered", "answered")
            assert len(ran) == (1 if fault.outcome == "ran" else 0)
            assert session.unpriced == (1 if fault.name in UNPRICED else 0)
        honest = True
        # Whatever came, the conversation goes on: `serve` checks that the API would take every request.
        assert way(server, session, messages=[*messages, way.user()], tools=tools).answer == "done"


@pytest.mark.parametrize("body", [HTML, '{"id": ', ""])
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_a_wrapped_client_without_raw_responses_comes_to_the_same_error(
    some: Any, serve: Any, monkeypatch: pytest.MonkeyPatch, body: str, kind: str
) -> None:
    for resource in (Completions, AsyncCompletions, Responses, AsyncResponses):
        monkeypatch.setattr(resource, "with_raw_response", None)
    server, messages = serve(lambda *_: Raw(body, kind)), [some.user()]
    with Policy().session("wrapped") as session:
        with pytest.raises(ResponseFailed, match=r"^the reply is no ") as raised:
            some(server, session, messages=messages)
        assert (len(messages), session.unpriced) == (1, 2 if some.stream else 1)
    assert " ".join(body.replace("\x07", "").split()) in str(raised.value)
    assert server.base_url in (raised.value.url or "")


@pytest.mark.parametrize(
    "ids", [("c1", "c1"), ("", ""), ("c1", "c1", "c1"), ("c1", "c1_1_1", "c1"), (None, "call_1_0")]
)
def test_calls_that_share_an_id_are_answered_each_for_itself(way: Any, serve: Any, ids: tuple[str | None, ...]) -> None:
    made = [call("search", {"path": str(n)}, id=id_ or "") for n, id_ in enumerate(ids)]

    def script(body: Any, n: int) -> Reply:
        return Text("done") if n else Calls(*made)

    ran: list[str] = []

    def search(path: str) -> str:
        ran.append(path)
        return f"found {path}"

    server, messages = serve(script), [way.user()]
    with Policy().session("twins") as session:
        assert way(server, session, messages=messages, tools=Registry([search])).answer == "done"
    assert sorted(ran) == [str(n) for n in range(len(ids))]
    told = [m.get("content") or m.get("output") for m in messages if m.get("role") == "tool" or "output" in m]
    assert all(f"found {n}" in said for n, said in enumerate(told))
    assert len(told) == len(ids)
    answered = [m.get("tool_call_id") or m["call_id"] for m in messages if m.get("role") == "tool" or "output" in m]
    made_by = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    made_by += [m["call_id"] for m in messages if m.get("type") == "function_call"]
    assert answered == made_by
    assert len(set(answered)) == len(ids)
