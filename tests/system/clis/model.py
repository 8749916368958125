"""
A scripted model on loopback that speaks the wires of three CLIs: Anthropic Messages, OpenAI Responses and Gemini.

    with Model() as model:
        model.says([Calls(call("Bash", {"command": "ls"})), Text("done")])
        subprocess.run([...], env={"ANTHROPIC_BASE_URL": model.url, ...})
    model.asked[-1].results
"""

import json

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from guardrails.testing.scripted_openai import WIRES, Body, Fail, Raw, ScriptedOpenAI, Text, Usage


ANSWER: Final = "That is all I have found."
"""The final answer of the model."""
OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
MADE: Final = frozenset({"function_call", "custom_tool_call", "reasoning"})
Parts = Iterator[tuple[str, str]]
"""Of a conversation: `own` is of the model, `result` is what it reads of a call, `text` is what else it reads."""


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What a CLI sends its model, and what the model reads of it, alike on each wire.
    """

    body: Body
    tools: tuple[str, ...]
    """The names of the tools that it has; none where the CLI asks for a title or a summary."""
    turn: int
    """Turns of the model that the conversation has so far."""
    prompt: str
    """What the user says before the first turn of the model, with what the CLI adds to it."""
    results: tuple[str, ...]
    """What the model reads of each call that it made, in order."""
    notes: tuple[str, ...]
    """What else it reads after its first turn: texts of the user, of the system and of hooks."""
    silenced: bool = False
    """It may call none of its tools: the CLI wants its answer."""

    @classmethod
    def of(cls, body: Body, tools: Iterable[str], parts: Parts, silenced: bool = False) -> "Asked":
        texts: dict[str, list[str]] = {"own": [], "result": [], "text": [], "prompt": []}
        turn, before = 0, ""
        for kind, text in parts:
            turn += kind == "own" != before
            before = kind
            texts["prompt" if kind == "text" and not turn else kind].append(text)
        results, notes = tuple(texts["result"]), tuple(texts["text"])
        return cls(body, tuple(tools), turn, "\n".join(texts["prompt"]), results, notes, silenced)


Script = Callable[[Asked], Text]


def _text(content: Any) -> str:
    match content:
        case str():
            return content
        case dict():
            values = [*content.values()]
            return _text(values[0]) if list(map(type, values)) == [str] else json.dumps(content, ensure_ascii=False)
    return "\n".join(part.get("text", f"[{part.get('type')}]") for part in content or ())


class Messages:
    """
    The wire of Anthropic Messages.
    """

    def read(self, body: Body) -> Asked:
        return Asked.of(body, [tool["name"] for tool in body.get("tools") or () if "name" in tool], self._parts(body))

    def _parts(self, body: Body) -> Parts:
        for message in body.get("messages") or ():
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if message["role"] == "assistant":
                    yield "own", ""
                elif block["type"] == "tool_result":
                    yield "result", _text(block.get("content"))
                elif block["type"] == "text":
                    yield "text", block["text"]

    def whole(self, body: Body, reply: Text, n: int) -> Body:
        content: list[Body] = [{"type": "text", "text": reply.text}] if reply.text or not reply.calls else []
        for i, call in enumerate(reply.calls):
            made = {"name": call.name, "input": json.loads(call.arguments)}
            content.append({"type": "tool_use", "id": call.id or f"toolu_{n}_{i}", **made})
        spent = reply.used(body.get("messages")) or Usage(0, 0)
        usage = {"input_tokens": spent.prompt, "output_tokens": spent.completion}
        usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        head = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": body.get("model"), "usage": usage}
        reason = "tool_use" if reply.calls else "end_turn"
        return head | {"content": content, "stop_reason": reason, "stop_sequence": None}

    def frames(self, body: Body, reply: Text, n: int) -> Iterator[str]:
        message = self.whole(body, reply, n)
        events: list[Body] = [{"type": "message_start", "message": message | {"content": [], "stop_reason": None}}]
        for index, block in enumerate(message["content"]):
            begun, delta = block | {"text": ""}, {"type": "text_delta", "text": block.get("text")}
            if block["type"] == "tool_use":
                begun = block | {"input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append({"type": "content_block_start", "index": index, "content_block": begun})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        ended = {name: message[name] for name in ("stop_reason", "stop_sequence")}
        used = {"output_tokens": message["usage"]["output_tokens"]}
        events += [{"type": "message_delta", "delta": ended, "usage": used}, {"type": "message_stop"}]
        return (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Responses:
    """
    The wire of OpenAI Responses, whose replies the scripted OpenAI server writes.
    """

    whole, frames = WIRES["/v1/responses"].whole, WIRES["/v1/responses"].frames

    def read(self, body: Body) -> Asked:
        return Asked.of(body, [tool.get("name", tool["type"]) for tool in body.get("tools") or ()], self._parts(body))

    def _parts(self, body: Body) -> Parts:
        for item in body.get("input") or ():
            kind = item.get("type", "message")
            if kind in OUTPUTS:
                yield "result", _text(item.get("output"))
            elif kind in MADE or item.get("role") == "assistant":
                yield "own", ""
            elif kind == "message":
                yield "text", _text(item.get("content"))


class Contents:
    """
    The wire of Gemini.
    """

    def read(self, body: Body) -> Asked:
        tools = [one["name"] for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
        mode = ((body.get("toolConfig") or {}).get("functionCallingConfig") or {}).get("mode")
        return Asked.of(body, tools, self._parts(body), mode == "NONE")

    def _parts(self, body: Body) -> Parts:
        for content in body.get("contents") or ():
            for part in content.get("parts") or ():
                if content.get("role") == "model":
                    yield "own", ""
                elif "functionResponse" in part:
                    yield "result", _text(part["functionResponse"].get("response") or "null")
                elif "text" in part:
                    yield "text", part["text"]

    def whole(self, body: Body, reply: Text, n: int) -> Body:
        parts: list[Body] = [{"text": reply.text}] if reply.text or not reply.calls else []
        for i, call in enumerate(reply.calls):
            made = {"name": call.name, "args": json.loads(call.arguments)}
            parts.append({"functionCall": {"id": call.id or f"call_{n}_{i}", **made}})
        spent = reply.used(body.get("contents")) or Usage(0, 0)
        used = {"promptTokenCount": spent.prompt, "candidatesTokenCount": spent.completion}
        used["totalTokenCount"] = spent.prompt + spent.completion
        said = [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]
        return {"candidates": said, "modelVersion": "gemini-2.5-flash", "responseId": f"r_{n}", "usageMetadata": used}

    def frames(self, body: Body, reply: Text, n: int) -> Iterator[str]:
        yield f"data: {json.dumps(self.whole(body, reply, n))}\r\n\r\n"


Wire = Messages | Responses | Contents
ENDS: Final[dict[str, Wire]] = {"/messages": Messages(), "/responses": Responses(), "enerateContent": Contents()}
COUNTS: Final = {"/count_tokens": "input_tokens", ":countTokens": "totalTokens"}


class Model(ScriptedOpenAI):
    """
    The server, a context manager. Which reply comes depends on the conversation that a request carries, not on how many
    requests came before: a request sent twice and a conversation taken up again are answered alike.
    """

    def __init__(self) -> None:
        super().__init__([])
        self.final = ANSWER
        """The answer where it may call none of its tools, whatever its script."""
        self.asked: list[Asked] = []
        """The requests so far in which the model had tools, in order of arrival."""
        self.faults: list[str] = []
        """Of requests that could not be answered, why; a test fails if there are any."""

    def says(self, script: Script | Sequence[Text]) -> None:
        """
        Follow *script* from now on; of a list, it is the reply of each turn of a conversation, and the last again beyond its end.
        """
        self._says = script if callable(script) else lambda asked: script[min(asked.turn, len(script) - 1)]

    @property
    def url(self) -> str:
        return self.base_url.removesuffix("/v1")

    def answer(self, path: str, text: bytes) -> Raw:
        path, _, query = path.partition("?")
        wire = next((wire for end, wire in ENDS.items() if path.endswith(end)), None)
        if wire is None:
            counted = [name for end, name in COUNTS.items() if path.endswith(end)]
            return Raw(json.dumps(dict.fromkeys(counted, len(text) // 4))) if counted else Fail(404)
        try:
            body = json.loads(text)
            said, n = self._reply(wire.read(body))
            if body.get("stream") or "alt=sse" in query:
                return Raw("".join(wire.frames(body, said, n)), "text/event-stream")
            return Raw(json.dumps(wire.whole(body, said, n)))
        except Exception as error:  # whatever a script raises must reach the test that wrote it
            self.faults.append(f"{path}: {error!r}")
            return Fail(400, message=repr(error))

    def _reply(self, asked: Asked) -> tuple[Text, int]:
        # Without tools it is asked for a title or a summary.
        if not asked.tools:
            return Text("ok"), 0
        with self._lock:
            self.asked.append(asked)
            n = len(self.asked)
        return Text(self.final) if asked.silenced else self._says(asked), n
