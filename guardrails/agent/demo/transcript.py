"""
Read a recorded OpenAI chat: the assistant's turns, and the result of each tool call.
"""

import gzip
import io
import json
import re
import zlib

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.values.errors import GuardrailsError


Message = dict[str, Any]

_GZIP: Final = b"\x1f\x8b"
_MAX_BYTES: Final = 256 << 20
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PROMPTS: Final = frozenset({"system", "developer", "user"})


class TranscriptError(GuardrailsError):
    """
    A file is no recorded chat; says why.
    """


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """
    One tool call of the recording.
    """

    id: str
    tool: str
    arguments: str
    """The model's text."""
    result: str | None
    """None: the recording has none."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """
    One response of the recorded model.
    """

    text: str
    calls: tuple[RecordedCall, ...]


@dataclass(slots=True)
class Exchange:
    """
    The user's message, and the turns that answered it.
    """

    prompt: list[Message]
    turns: list[RecordedTurn] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Transcript:
    """
    A recorded chat. *notes* says what it lacks.
    """

    name: str
    exchanges: tuple[Exchange, ...]
    tools: tuple[Message, ...]
    """As the recording lists them, or made of the calls where it lists none."""
    notes: tuple[str, ...]

    @property
    def calls(self) -> list[RecordedCall]:
        """
        All calls in order.
        """
        return [call for turn in self.turns for call in turn.calls]

    @property
    def turns(self) -> list[RecordedTurn]:
        """
        All turns in order.
        """
        return [turn for exchange in self.exchanges for turn in exchange.turns]


def read_transcript(path: str | PathLike[str]) -> Transcript:
    """
    The chat recorded in *path*: JSON, gzip'd or not, a list of messages or an object with `messages`.

    Raises TranscriptError if it cannot be read or is no chat.
    """
    name = Path(path).name
    try:
        data = json.loads(_unpacked(Path(path).read_bytes()).decode("utf-8-sig"))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise TranscriptError(f"{path}: the compressed data is cut off or damaged") from None
    except OSError as error:
        raise TranscriptError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise TranscriptError(f"{path}: not UTF-8 text, at byte {error.start}") from None
    except json.JSONDecodeError as error:
        cut = "cut off or " if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated") else ""
        raise TranscriptError(f"{path}:{error.lineno}:{error.colno}: {cut}not JSON: {_said(error)}") from None
    except RecursionError:
        raise TranscriptError(f"{path}: nested too deeply") from None
    except TranscriptError as error:
        raise TranscriptError(f"{path}: {error}") from None
    try:
        return parse_transcript(data, name=name)
    except TranscriptError as error:
        raise TranscriptError(f"{path}: {error}") from None


def _said(error: json.JSONDecodeError) -> str:
    return error.msg.lower().removesuffix(" starting at")


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        found = packed.read(_MAX_BYTES + 1)
    if len(found) > _MAX_BYTES:
        raise TranscriptError(f"it unpacks to more than {_MAX_BYTES >> 20} MB")
    return found


def parse_transcript(data: Any, *, name: str = "transcript") -> Transcript:
    """
    The chat that *data* is: a list of messages, or a mapping with `messages` and perhaps `tools`.

    Raises TranscriptError if it is neither.
    """
    listed = data.get("messages") if isinstance(data, Mapping) else data
    if not isinstance(listed, list) or not all(
        isinstance(m, Mapping) and isinstance(m.get("role"), str) for m in listed
    ):
        raise TranscriptError("no chat: expected a list of messages, each with a `role`, or an object with `messages`")
    exchanges, unplayed = _exchanges(listed)
    if not exchanges:
        raise TranscriptError("no chat: there is no message of an assistant")
    calls = [call for exchange in exchanges for turn in exchange.turns for call in turn.calls]
    tools = data.get("tools") if isinstance(data, Mapping) else None
    given = tuple(_listed(tools)) if all(map(_on_the_wire, _listed(tools))) else ()
    return Transcript(name, tuple(exchanges), given or _tools(calls), tuple(_notes(exchanges, calls, unplayed)))


def _exchanges(messages: list[Mapping[str, Any]]) -> tuple[list[Exchange], int]:
    """
    The chat in parts that each end where the model answered; how many messages cannot be played.
    """
    exchanges: list[Exchange] = []
    prompt: list[Message] = []
    unplayed = 0
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message["role"] == "assistant":
            # An answer ends a loop; what follows it, the user's or the model's own, starts another.
            if prompt or not exchanges or not exchanges[-1].turns[-1].calls:
                exchanges.append(Exchange(prompt))
                prompt = []
            end = next((i for i in range(at, len(messages)) if messages[i]["role"] != "tool"), len(messages))
            turn, unclaimed = _turn(message, messages[at:end], at)
            exchanges[-1].turns.append(turn)
            unplayed += unclaimed
            at = end
        elif message["role"] in _PROMPTS:
            prompt.append({"role": message["role"], "content": text_of(message.get("content"))})
        else:
            unplayed += 1
    if exchanges and not exchanges[0].prompt:
        exchanges[0].prompt.append({"role": "user", "content": ""})
    return exchanges, unplayed


def _turn(message: Mapping[str, Any], results: list[Mapping[str, Any]], at: int) -> tuple[RecordedTurn, int]:
    """
    A turn with its results, and how many of *results* belong to none of its calls.
    """
    unclaimed = list(results)
    calls = []
    for position, wire in enumerate(_listed(message.get("tool_calls"))):
        kind = "custom" if isinstance(wire, Mapping) and "custom" in wire else "function"
        said = wire.get(kind) if isinstance(wire, Mapping) else None
        if not isinstance(said, Mapping):
            raise TranscriptError(f"no chat: `tool_calls[{position}]` of message {at} has no `{kind}`")
        arguments = {"input": said.get("input")} if kind == "custom" else said.get("arguments")
        found = next((result for result in unclaimed if result.get("tool_call_id") == wire.get("id")), None)
        if found is not None:
            unclaimed.remove(found)
        calls.append(
            RecordedCall(
                id=str(wire.get("id") or f"call_{at}_{position}"),
                tool=str(said.get("name") or ""),
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
                result=None if found is None else text_of(found.get("content")),
            )
        )
    return RecordedTurn(text_of(message.get("content")), tuple(calls)), len(unclaimed)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(content: Any) -> str:
    """
    The text of a message's content: as it is, or its text parts joined.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content)
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "".join(text for text in texts if isinstance(text, str))


def _on_the_wire(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def _tools(calls: Iterable[RecordedCall]) -> tuple[Message, ...]:
    """
    Entries for a request's `tools` that take any arguments, under names that the wire allows.
    """
    names = dict.fromkeys(re.sub(r"[^a-zA-Z0-9_-]", "_", call.tool)[:64] or "_" for call in calls)
    return tuple({"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in names)


def _notes(exchanges: list[Exchange], calls: list[RecordedCall], unplayed: int) -> Iterable[str]:
    if not calls:
        yield "holds no tool calls"
    if lacking := sum(call.result is None for call in calls):
        yield f"lacks the results of {lacking} of {len(calls)} calls"
    if unplayed:
        yield f"has messages that cannot be played ({unplayed}): results of no call, or roles of an older wire"
    last = exchanges[-1].turns[-1]
    if last.calls or not last.text.strip():
        yield "is truncated: it ends without a final answer"
