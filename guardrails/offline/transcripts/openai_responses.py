"""
OpenAI Responses items: `function_call`, `custom_tool_call`, `local_shell_call` and their outputs.

A file is a list of items, a response object (or an object with `input`, `output` or `items`), or these values as JSON
lines. A history that is sent again with each request is read once: a call is known by its `call_id`. A session is the
`conversation`, or else the file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .calls import RecordedCall, Report
from .events import Came, Event, Made, Used, Values
from .fields import arguments_of, count, is_one_of, listed, mapping, objects, text, time_ms


_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call"})
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_ITEMS: Final = _CALLS | _OUTPUTS | {"reasoning", "mcp_call"}
_LISTS: Final = ("input", "items", "data", "output")
"""Where an object may hold items, in their order."""
_PROMPTS: Final = frozenset({"user", "system", "developer"})
_FAILED: Final = frozenset({"failed", "incomplete"})


class OpenAIResponses:
    """
    The Responses API, as its clients keep it.
    """

    name = "openai responses items"

    def fits(self, value: Any) -> bool | None:
        if type(value) is list:
            return any(map(is_item, value)) or any(mapping(each).get("object") == "response" for each in value[:3])
        held = mapping(value)
        if is_item(value) or held.get("object") == "response":
            return True
        return any(is_item(item) for key in _LISTS for item in listed(held.get(key))) or (
            None if held.get("type") == "message" or "role" in held else False
        )

    def events(self, values: Values, file: str, report: Report) -> Iterator[Event]:
        items = Items()
        for number, value in values:
            if not mapping(value) and type(value) is not list:
                report.broke(file, number)
            yield from items.all_of(value, file)


def is_item(value: Any) -> bool:
    """
    Returns whether *value* is an item that only the Responses API has.
    """
    return type(value) is dict and is_one_of(value.get("type"), _ITEMS)


@dataclass(slots=True)
class Items:
    """
    Items as they come; a model response ends if an output, a message of somebody else or another response begins.
    """

    responses: dict[str, int] = field(default_factory=dict)
    """By session: the response that goes on, negative once it is over."""
    holder: Mapping[str, Any] = field(default_factory=dict)
    """The response object whose output is read."""

    def all_of(self, value: Any, session: str) -> Iterator[Event]:
        """
        Yields the events of an item, a response object, an object with lists of items, or a list of those.
        """
        if type(value) is list:
            for each in objects(value):
                yield from self.all_of(each, session)
            return
        held = mapping(value)
        if is_item(held) or "role" in held:
            yield from self._item(held, session)
            return
        conversation = held.get("conversation")
        named = text(mapping(conversation).get("id")) or text(conversation)
        session = named or text(held.get("conversation_id")) or text(held.get("session_id")) or session
        self._over(session)
        for key in _LISTS:
            self.holder = held if key == "output" else {}
            for item in objects(held.get(key)):
                yield from self._item(item, session)
        self.holder = {}
        self._over(session)

    def _over(self, session: str) -> None:
        self.responses[session] = -abs(self.responses.get(session, 0))

    def _item(self, item: Mapping[str, Any], session: str) -> Iterator[Event]:
        kind = item.get("type")
        if is_one_of(kind, _CALLS):
            yield from self._made(item, session)
        elif is_one_of(kind, _OUTPUTS):
            self._over(session)
            failed = _failed(item)
            # A file that is cut off may end before what came back.
            if failed or "output" in item:
                yield Came(session, text(item.get("call_id")) or text(item.get("id")), item.get("output"), failed)
        elif is_one_of(item.get("role"), _PROMPTS):
            self._over(session)

    def _made(self, item: Mapping[str, Any], session: str) -> Iterator[Event]:
        response = self.responses.get(session, 0)
        if response <= 0:
            response = self.responses[session] = 1 - response
            usage = mapping(self.holder.get("usage"))
            yield Used(session, response, count(usage.get("input_tokens")), count(usage.get("output_tokens")))
        tool, arguments = _tool_of(item)
        call = RecordedCall("", session, 0, tool, arguments, id=text(item.get("call_id")) or text(item.get("id")))
        call.model = text(self.holder.get("model"))
        call.ts_ms = time_ms(self.holder.get("completed_at") or self.holder.get("created_at"))
        yield Made(call, call.id, response)


def _failed(item: Mapping[str, Any]) -> bool | None:
    """
    Returns whether an output says that it failed: by its status, or the exit codes of a shell's commands. Returns None
    if it says nothing.
    """
    if is_one_of(item.get("status"), _FAILED):
        return True
    ends = [mapping(each.get("outcome")) for each in objects(item.get("output"))]
    codes = [end.get("exit_code") for end in ends if end.get("type") == "exit"]
    if any(end.get("type") == "timeout" for end in ends):
        return True
    return any(code != 0 for code in codes) if codes else None


def _tool_of(item: Mapping[str, Any]) -> tuple[str, Any]:
    """
    Tool and arguments of a call.
    """
    kind = str(item["type"])
    name = text(item.get("name")) or kind.removesuffix("_call")
    if namespace := text(item.get("namespace")):
        name = f"{namespace}/{name}"
    if kind == "custom_tool_call":
        return name, item.get("input")
    said = next((item[key] for key in ("arguments", "action", "operation") if key in item), None)
    return name, arguments_of(said)
