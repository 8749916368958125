"""
What holds whatever a server changes in a good response: an answer or the one clear error, and no invalid request after it.
"""

import json

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from openai import DefaultHttpxClient, OpenAI

from guardrails import Policy, Validation
from guardrails.errors import ResponseFailed
from guardrails.integrations.openai import run
from guardrails.testing.scripted_openai import Calls, Raw, Reply, ScriptedOpenAI, Text, call
from tests.openai_api import CHAT, RESPONSES, SSE, problems, reasoning
from tests.tables import table


REQUEST: Final = {"model": "m", "stream_options": {"include_usage": True}}
GOOD: Final = (
    Calls(call("look", {"path": "a"}, id="c1"), call("look", {"path": "b"}, id="c2"), items=(reasoning("hm"),)),
    Calls(call("look", {"path": "a"}, id="c1"), text="Let me look."),
    Text("It rains."),
    Text(refusal="I cannot"),
)
VALUES: Final[list[Any]] = [
    *(None, True, 0, 7, -1.5, 10**40, "", "x", "\ud83d", "\x00"),
    *([], [7], [[]], {}, {"type": "x"}, {"id": 7}),
]
GONE: Final = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """
    Where something can be changed in *value*.
    """
    yield path
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, held in within:
        yield from places(held, (*path, name))


def changed(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return {} if value is GONE else value
    made = within = deepcopy(body)
    for step in path[:-1]:
        within = within[step]
    if value is GONE:
        del within[path[-1]]
    elif isinstance(within[path[-1]], dict) and isinstance(value, dict):
        within[path[-1]] |= value
    else:
        within[path[-1]] = value
    return made


def driven(wire: str, bodies: list[Reply], *, stream: bool) -> None:
    """
    Run the loop before a server that sends *bodies*, then good answers.
    """
    server = ScriptedOpenAI(lambda body, n: bodies.pop(0) if bodies else Text("done"))
    ran: list[str] = []

    def look(path: str) -> str:
        ran.append(path)
        return f"nothing in {path}"

    messages: list[Any] = [{"role": "user", "content": "go"}]
    options: Any = {"model": "m", "messages": messages, "tools": [look], "wire": wire, "stream": stream}
    http = DefaultHttpxClient(transport=server.transport)
    with (
        OpenAI(base_url="http://127.0.0.1/v1", api_key="-", max_retries=0, http_client=http) as client,
        Policy([Validation()]).session("law") as session,
    ):
        failed = None
        try:
            assert run(client, session, **options).answer.strip()
        except ResponseFailed as error:
            failed = error
        if failed is not None:
            assert (failed.status, str(failed).isprintable()) == (200, True)
            assert (ran, len(messages)) == ([], 1)
        bodies.clear()
        messages.append({"role": "user", "content": "and now?"})
        json.dumps(messages, allow_nan=False, ensure_ascii=False).encode()
        assert run(client, session, **options).answer == "done"
    assert problems(server.requests) == []


@table("stream", [False, True])
@table("wire", ["chat", "responses"])
@given(data=st.data())
def test_whatever_is_changed_in_a_response_it_is_an_answer_or_the_one_error(
    wire: str, data: st.DataObject, *, stream: bool
) -> None:
    api: Any = CHAT if wire == "chat" else RESPONSES
    reply = data.draw(st.sampled_from(GOOD))
    if stream:
        frames = api.frames(REQUEST, reply, 0)
        at = data.draw(st.integers(0, len(frames) - 1))
        head, _, said = frames[at].partition("data: ")
        good = json.loads(said) if "[DONE]" not in said else {}
    else:
        frames, at, head, good = [""], 0, "", api.whole(REQUEST, reply, 0)
    bad = good
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(bad))))
        bad = changed(bad, path, data.draw(st.sampled_from([GONE, *VALUES])))
    frames[at] = f"{head}data: {json.dumps(bad)}\n\n" if stream else json.dumps(bad)
    sent = Raw("".join(frames), SSE) if stream else Raw("".join(frames))
    driven(wire, [sent] * (2 if stream else 1), stream=stream)
