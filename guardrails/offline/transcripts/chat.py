"""
Conversations as the APIs of models and their clients keep them: messages (OpenAI, Anthropic, Cline, Roo) and items (OpenAI Responses).

A file holds a conversation (an object with a list of messages or items, or the bare list), a list of conversations, or these values or
single messages and items as JSON lines. A call is a member of `tool_calls`, a block `tool_use`, or an item. Its result is a message of its
own, a block, an item, or, as Cline writes it, a text `[TOOL for ...] Result:`.

A session is named by the conversation's id, or by the file and its line or place. A history that is sent again with more
behind it is read once, and so is one of items; the ids of messages may be used again. The only result in a user's message is that of the only call without one, by whatever name.
"""

import re

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .calls import Came, Event, Format, Made, RecordedCall, Used, Values
from .fields import ITEM_CALLS, ITEM_OUTPUTS, at, item_call, mapping, objects, text, text_of, time_ms


_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_ITEMS: Final = (*ITEM_CALLS, *ITEM_OUTPUTS, "reasoning", "mcp_call")
_LISTS: Final = ("messages", "input", "items", "data", "output")
"""Where an object may hold messages or items, in their order."""
_IDS: Final = ("session_id", "sessionId", "conversation_id", "thread_id", "chat_id")
_TIMES: Final = ("timestamp", "completed_at", "created_at", "created", "ts")
_ANSWER: Final = re.compile(r"^\[(\w{1,60})(?: for (?s:.{1,2000}?))?\] Result:\s?", re.MULTILINE)
_TAG: Final = re.compile(r"<(\w{1,60})>")
_ASIDE: Final = "<environment_details>"
_DENIED: Final = "The user denied this operation"
_FAILED: Final = re.compile(rf"The tool execution failed|{_DENIED}|Command.{{0,200}}was not successful")
"""Of Cline and Roo, where a call failed."""

Part = Mapping[str, Any]
"""A message or an item."""
Conversation = tuple[str, Part, list[Part]]
"""Its name, the object that holds it, and its messages or items."""


def _fits(value: Any) -> bool:
    parts = [_is_part(part) for *_, messages in _conversations(value, "", "") for part in messages]
    return any(parts) and 2 * sum(parts) >= len(parts)


def _events(values: Values, file: str) -> Iterator[Event]:
    sessions: defaultdict[str, list[tuple[Part, Part]]] = defaultdict(list)
    """The messages and items of each, with the objects that hold them."""
    latest = file
    # By its place and not its line: a blank line changes no name.
    for place, (_, value) in enumerate(values, 1):
        unnamed = file if place == 1 else f"{file}:{place}"
        for own, held, parts in _conversations(value, unnamed, file):
            # Each request to a model has the history again: what begins with all of its session, or of the latest, goes on.
            before = sessions[latest if own == unnamed else own]
            again = 0 < len(before) < len(parts) and parts[: len(before)] == [part for part, _ in before]
            latest = latest if again and own == unnamed else own
            sessions[latest] += [(part, held) for part in parts[len(before) if again else 0 :]]
    for name, pairs in sessions.items():
        yield from _session(name, pairs)


def _conversations(value: Any, unnamed: str, file: str) -> Iterator[Conversation]:
    """
    Yields each conversation. One without an id is *unnamed*; messages and items that come one by one are of the *file*.
    """
    if type(value) is list and value and not _is_part(value[0]):
        for place, one in enumerate(objects(value)):
            yield from _conversations(one, f"{unnamed}/{place}", file)
    elif type(value) is list:
        yield unnamed, {}, list(objects(value))
    else:
        held = mapping(value)
        own = held.get("id") if "messages" in held else None
        ids = (at(held, "conversation", "id"), held.get("conversation"), *map(held.get, _IDS), own)
        name = next((str(id_) for id_ in ids if type(id_) in (str, int)), unnamed if "messages" in held else file)
        yield name, held, [held] if _is_part(held) else [part for of in _LISTS for part in objects(held.get(of))]


def _is_part(value: Any) -> bool:
    """
    Whether *value* is an item, or a message whose calls would be seen: the SDK of Vercel has calls in `parts`, or in blocks of its own.
    """
    part = mapping(value)
    foreign = any(str(block.get("type")).startswith("tool-") for block in objects(part.get("content")))
    return part.get("type") in _ITEMS or (
        part.get("role") in _ROLES and not {"content", "tool_calls", "function_call"}.isdisjoint(part) and not foreign
    )


def _session(name: str, parts: Sequence[tuple[Part, Part]]) -> Iterator[Event]:
    """
    Yields what the messages or items of a session say. A result is known by the id of its call or, without one, by its tool.
    """
    step = 0
    """Items of one step are of one response; a message with calls is a step."""
    before: Part = {}
    holder: Part = {}
    waiting: list[Made] = []
    """The calls that have no result yet: of the latest message, or of all items."""
    for part, held in parts:
        calls, results, spoken = list(_calls_in(part)), list(_results_in(part)), part.get("role")
        step += held is not holder and held is not part
        if not calls:
            step += bool(results) or spoken in ("system", "developer", "user")
        elif part.get("type") not in _ITEMS:
            step, waiting = step + 1, []
        yield from _made(name, part, calls, held, step, waiting)
        prose = text_of(before.get("content"))
        for of, content, failed in () if calls else results:
            values, prose = _tagged(prose, of)
            if values is not None and not any(of in (one.call.id, one.call.tool) for one in waiting):
                step, waiting = step + 1, []
                yield from _made(name, before, [(None, of, values)], held, step, waiting)
            only = waiting[0] if spoken == "user" and len(waiting) == len(results) == 1 else None
            if call := next((one for one in waiting if of in (one.call.id, one.call.tool)), only):
                waiting.remove(call)
                denied = text_of(content).startswith(_DENIED)
                yield Came(name, call.key, content, failed, _time(part), kind="cancelled" if denied else "other")
        holder, before = held, part


def _made(
    name: str, part: Part, calls: list[tuple[Any, str, Any]], held: Part, step: int, waiting: list[Made]
) -> Iterator[Event]:
    """
    Yields the *calls* of a message or an item that *held* holds, which are *waiting* then, and the usage of their response.
    """
    metrics, info = mapping(part.get("metrics")), mapping(part.get("modelInfo"))
    own = {f"{side}_tokens": at(metrics, "tokens", side) for side in ("prompt", "completion")}
    model = part.get("model") or info.get("id", info.get("modelId")) or held.get("model")
    for id_, tool, arguments in calls:
        yield Used(name, step, part.get("usage") or held.get("usage") or own, part.get("cost", metrics.get("cost")))
        call = RecordedCall(name, tool, arguments, id=text(id_), model=model)
        item = part.get("type") in _ITEMS
        waiting.append(Made(call, (item and call.id) or id(call), step, _time(part) or (_time(held) if item else None)))
        yield waiting[-1]


def _tagged(prose: str, tool: Any) -> tuple[dict[str, str] | None, str]:
    """
    Returns the arguments of the first call of *tool* that stands as tags in *prose*, as Cline and Roo wrote it until 2025, and what
    is behind it. Returns None and *prose* if there is none.
    """
    inner, closed, rest = prose.partition(f"<{tool}>")[2].partition(f"</{tool}>")
    if not closed:
        return None, prose
    values, start = {}, 0
    while (tag := _TAG.search(inner, start)) and (end := inner.find(f"</{tag[1]}>", tag.end())) >= 0:
        values[tag[1]], start = inner[tag.end() : end].strip("\n"), end
    return values, rest


def _time(part: Part) -> int | None:
    return next((at_ms for name in _TIMES if (at_ms := time_ms(part.get(name))) is not None), None)


def _calls_in(part: Part) -> Iterator[tuple[Any, str, Any]]:
    """
    Yields id, tool and arguments of the calls that a message or an item makes.
    """
    if part.get("type") in ITEM_CALLS:
        (tool, arguments), namespace = item_call(part), text(part.get("namespace"))
        yield text(part.get("call_id")) or part.get("id"), f"{namespace}/{tool}" if namespace else tool, arguments
    elif part.get("role") == "assistant":
        wires = (*objects(part.get("tool_calls")), {"function": part.get("function_call")})
        made = [(wire.get("id"), mapping(wire.get("function")) or mapping(wire.get("custom"))) for wire in wires]
        if not any(block for _, block in made):
            # LangChain writes both.
            blocks = objects(part.get("content"))
            made = [(block.get("id"), block) for block in blocks if block.get("type") == "tool_use"]
        for id_, block in made:
            if name := text(block.get("name")):
                yield id_, name, block.get("arguments", block.get("input"))


def _results_in(part: Part) -> Iterator[tuple[Any, Any, bool | None]]:
    """
    Yields of each result in a message or an item the id, or else the tool, of its call, its content, and whether it failed
    (None: it says nothing of that).
    """
    role, content = part.get("role"), part.get("content")
    if part.get("type") in ITEM_OUTPUTS:
        ends = [at(end, "outcome", "exit_code") for end in objects(part.get("output"))]
        failed = True if part.get("status") in ("failed", "incomplete") or any(ends) else None
        if failed or "output" in part:
            yield text(part.get("call_id")) or part.get("id"), part.get("output"), failed
    elif role in ("tool", "function"):
        # Without content there is no result yet.
        if "content" in part:
            yield text(part.get("tool_call_id")) or part.get("name"), content or "", None
    elif role == "user":
        for block in objects(content):
            if block.get("type") == "tool_result":
                result, failed = block.get("content") or "", block.get("is_error")
                failed = failed if type(failed) is bool else _has_failed(text_of(result))
                yield text(block.get("tool_use_id")) or block.get("name"), result, failed
        parts = _ANSWER.split(text_of(content))
        for tool, answer in zip(parts[1::2], parts[2::2], strict=True):
            result = answer.partition(_ASIDE)[0].strip()
            yield tool, result, _has_failed(result)


def _has_failed(result: str) -> bool | None:
    """
    Returns True if Cline or Roo says in a result that its call failed; None: it does not say.
    """
    return _FAILED.match(result) is not None or None


CHAT: Final = Format("chat", _fits, _events)
