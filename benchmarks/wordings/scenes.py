"""
The scenes: a real session of the library makes the envelope, and the loop's next request is what the model is asked.
"""

import json
import tempfile

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from openai import OpenAI

from guardrails import Policy, Registry, Tool
from guardrails.core.engine.decision import Decision
from guardrails.integrations.openai import run
from guardrails.testing.replies import Body, Calls, Reply, ScriptedCall, Text
from guardrails.testing.scripted_openai import ScriptedOpenAI

from .actions import Asked, Obeys, an_answer, another_tool, fits, other_than_it, the_same
from .topics import Topic


STEP_S: Final = 5.0
"""Between two requests of a scripted model."""
START: Final = 1_800_000_000.0
FORM: Final = (
    'You help the user. Reply with {"tool": NAME, "arguments": {...}} to call a tool, or with {"answer": TEXT} to answer'
    " the user. The tools:"
)
"""The system message, since the model's own template knows no tools."""


class Scene(NamedTuple):
    """
    A place where a model reads words of ours.
    """

    name: str
    says: str
    """The code that is said, or the next action of a failure."""
    turns: Callable[[Topic], Sequence[Sequence[ScriptedCall]]]
    """The calls of each turn; the last call is the one that is answered by the words."""
    wanted: str
    obeys: Obeys
    policy: str = ""
    """YAML beside `extends: default`."""
    fails: str | None = None
    """The text with which the tool fails."""
    step_s: float = STEP_S
    free: bool = False
    """The model may break the schema, as with a host that enforces none."""
    vague: bool = False
    """The user does not say what the tool has to be told."""


class Told(NamedTuple):
    """
    A scene in one topic: what the model is asked, and the words in it.
    """

    scene: Scene
    topic: Topic
    body: Body
    """The loop's next request."""
    envelope: dict[str, Any]
    """The last result in it."""
    plain: tuple[str, ...]
    """What the tool itself says to each call so far, with no library between."""
    asked: Asked


def _repeated(times: int) -> Callable[[Topic], list[list[ScriptedCall]]]:
    return lambda topic: [[topic.asks()] for _ in range(times)]


def _varied(times: int) -> Callable[[Topic], list[list[ScriptedCall]]]:
    return lambda topic: [[topic.asks(n)] for n in range(times)]


BUSY: Final = "429 Too Many Requests"
SCENES: Final = (
    Scene("a repeat is refused", "duplicates.evidence", _repeated(3), "anything but the same call", other_than_it),
    Scene("a repeat is told", "loops.reread", _repeated(2), "anything but the same call", other_than_it),
    Scene(
        "failures alike are told",
        "loops.same_error",
        _varied(4),
        "another tool, or an answer",
        another_tool,
        fails="404 Not Found",
    ),
    Scene(
        "a tool's turn is over",
        "streak.max_same",
        _varied(4),
        "another tool, or an answer",
        another_tool,
        policy="streak: {max_same: 3}",
    ),
    Scene(
        "arguments do not fit",
        "validation.arguments",
        lambda topic: [[topic.asks(0, **{topic.choice: topic.wrong})]],
        "a call that fits",
        fits,
        free=True,
    ),
    Scene(
        "an argument is missing",
        "validation.arguments",
        lambda topic: [[topic.asks(0, **{topic.key: None})]],
        "an answer that asks",
        an_answer,
        free=True,
        vague=True,
    ),
    Scene("a retry pays", "retry", _repeated(1), "the same call", the_same, fails=BUSY),
    Scene(
        "a retry comes too early",
        "retryable.wait",
        _repeated(2),
        "anything but the same call",
        other_than_it,
        fails=f"{BUSY}. Retry after 30 seconds.",
    ),
    Scene(
        "no retry pays",
        "give_up",
        _repeated(4),
        "anything but the same call",
        other_than_it,
        fails=f"{BUSY}. Retry after 30 seconds.",
        step_s=40.0,
    ),
    Scene(
        "the last call is used up",
        "budget.max_calls",
        _varied(2),
        "an answer",
        an_answer,
        policy="budget: {max_calls: 2}",
    ),
    Scene(
        "a call over the limit",
        "budget.max_calls",
        lambda topic: [[topic.asks(0), topic.asks(1)]],
        "an answer",
        an_answer,
        policy="budget: {max_calls: 1}",
    ),
)


def told(scene: Scene, topic: Topic) -> Told:
    """
    Returns *scene* in *topic*, played by a scripted model in the library's own loop. Raises RuntimeError if the library
    did not say what the scene is about.
    """
    turns = scene.turns(topic)
    decisions: list[Decision] = []
    now = START

    def model(body: Body, n: int) -> Reply:
        nonlocal now
        now += scene.step_s
        return Calls(*turns[n]) if n < len(turns) else Text("done")

    def execute(tool: str, arguments: dict[str, Any]) -> Any:
        return _tool(scene, topic, arguments)

    tools = topic.tools
    registry = Registry()
    for tool in tools:
        registry.add(tool, execute)
    with (
        ScriptedOpenAI(model) as server,
        _policy(scene).session("scene", clock=lambda: now, on_decision=decisions.append) as session,
        OpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        question = topic.vague if scene.vague else topic.question
        messages = [{"role": "system", "content": _told_of(tools)}, {"role": "user", "content": question}]
        run(client, session, model="gpt-5-mini", messages=messages, tools=registry)
        body, spent = server.requests[-1], session.exhausted_by
    # A host that cannot switch tools off has only the words.
    body.pop("tool_choice", None)
    if scene.free:
        body["tools"] = [_freed(tool) for tool in body["tools"]]
    asked = [json.loads(call.arguments) for turn in turns for call in turn]
    envelope = json.loads(body["messages"][-1]["content"])
    said = {spent, envelope.get("code"), envelope.get("next_action"), *(code for code, _ in decisions[-1].nudges)}
    if scene.says not in said:
        raise RuntimeError(f"`{scene.name}` about {topic.tool}: the library says {said}, and not {scene.says}")
    plain = tuple(_plain(scene, topic, arguments) for arguments in asked)
    return Told(scene, topic, body, envelope, plain, Asked(tools[0], asked[-1]))


def all_told(scenes: Sequence[Scene], topics: Sequence[Topic]) -> Iterator[Told]:
    """
    Each scene in each topic.
    """
    return (told(scene, topic) for scene in scenes for topic in topics)


def _policy(scene: Scene) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.yaml")
        file.write_text(f"version: 1\nextends: default\n{scene.policy}\n", encoding="utf-8")
        return Policy.load(file, reload=None)


def _tool(scene: Scene, topic: Topic, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    A tool as many are: it takes what it needs, and what goes wrong is raised.
    """
    if scene.fails is not None:
        raise RuntimeError(scene.fails)
    known = dict.fromkeys(topic.choices, topic.found)
    return [{topic.key: arguments[topic.key], **known[arguments[topic.choice]]}]


def _plain(scene: Scene, topic: Topic, arguments: Mapping[str, Any]) -> str:
    try:
        return json.dumps(_tool(scene, topic, arguments))
    except (LookupError, RuntimeError) as error:
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def _told_of(tools: Sequence[Tool]) -> str:
    listed = "\n".join(
        f"- {tool.name}({', '.join(_parameter(*each) for each in tool.openai()['function']['parameters']['properties'].items())}):"
        f" {tool.description}"
        for tool in tools
    )
    return f"{FORM}\n{listed}"


def _parameter(name: str, schema: Mapping[str, Any]) -> str:
    return f"{name}: {' or '.join(schema['enum'])}" if "enum" in schema else name


def _freed(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    names = function["parameters"]["properties"]
    loose = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return {**tool, "function": {**function, "parameters": loose}}
