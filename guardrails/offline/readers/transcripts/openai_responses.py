"""
OpenAI Responses items: `function_call`, `custom_tool_call`, `local_shell_call` and their outputs.

A file is a list of items, a response object (or an object with `input`, `output` or `items`), or these values as JSON
lines. A history that is sent again with each request is read once: a call is known by its `call_id`. A session is the
`conversation`, or else the file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from guardrails.offline.readers.base import RecordedCall, Report
from guardrails.offline.readers.text.fields import (
    arguments_of,
    count,
    is_one_of,
    listed,
    mapping,
    objects,
    text,
    time_ms,
)
from guardrails.offline.readers.text.leading import leading_values
from guardrails.offline.readers.text.parsing import parsed_values
from guardrails.offline.readers.text.result_text import settle
from guardrails.offline.readers.waiting import Waiting


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
    whole = True

    def recognises(self, head: str) -> bool:
        return any(_holds_items(value) for value in leading_values(head))

    def calls(self, lines: Iterable[bytes], source: str, report: Report, file: str) -> Iterator[RecordedCall]:
        items = Items(source)
        for number, value in parsed_values(lines, report, file):
            response = mapping(value)
            if not response and type(value) is not list:
                report.broke(file, number)
            elif is_item(response) or "role" in response:
                yield from items.add(response, file)
            else:
                yield from items.add_all(value, file)
        yield from items.rest()


def item_calls(values: list[Any], source: str, session_id: str) -> Iterator[RecordedCall]:
    """
    Returns the calls among the items of one conversation.
    """
    items = Items(source)
    for item in objects(values):
        yield from items.add(item, session_id)
    yield from items.rest()


def is_item(value: Any) -> bool:
    """
    Returns whether *value* is an item that only the Responses API has.
    """
    return type(value) is dict and is_one_of(value.get("type"), _ITEMS)


def _holds_items(value: Any) -> bool:
    if type(value) is list:
        return any(map(is_item, value)) or any(mapping(each).get("object") == "response" for each in value[:3])

    response = mapping(value)
    return (
        is_item(value)
        or response.get("object") == "response"
        or any(is_item(item) for key in _LISTS for item in listed(response.get(key)))
    )


class Items:
    """
    Items as they come; a model response ends if an output, a message of somebody else or another response begins.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._waiting = Waiting()
        self._known: set[tuple[str, str]] = set()
        self._turns: dict[str, int] = {}
        self._in_response: set[str] = set()
        self._usage: tuple[int | None, int | None] = (None, None)
        self._model: str | None = None
        self._at_ms: int | None = None

    def add_all(self, value: Any, session_id: str) -> Iterator[RecordedCall]:
        """
        Returns a response object, an object with lists of items, or a list of either.
        """
        if type(value) is list:
            for each in objects(value):
                if is_item(each) or "role" in each:
                    yield from self.add(each, session_id)
                else:
                    yield from self.add_all(each, session_id)
            return

        conversation = value.get("conversation")
        named = text(mapping(conversation).get("id")) or text(conversation)
        session_id = named or text(value.get("conversation_id")) or text(value.get("session_id")) or session_id
        self._in_response.discard(session_id)
        usage = mapping(value.get("usage"))
        for key in _LISTS:
            if key == "output":
                self._usage = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
                self._model = text(value.get("model"))
                self._at_ms = time_ms(value.get("completed_at") or value.get("created_at"))
            for item in objects(value.get(key)):
                yield from self.add(item, session_id)
        self._usage, self._model, self._at_ms = (None, None), None, None
        self._in_response.discard(session_id)

    def add(self, item: Mapping[str, Any], session_id: str) -> Iterator[RecordedCall]:
        """
        Returns the calls that are ready after one item.
        """
        kind = item.get("type")
        if is_one_of(kind, _CALLS):
            self._begin(item, session_id)
        elif is_one_of(kind, _OUTPUTS):
            self._in_response.discard(session_id)
            call = self._waiting.settle(session_id, text(item.get("call_id")) or text(item.get("id")) or "")
            if call is not None:
                failed = _failed(item)
                # A file that is cut off may end before what came back.
                if failed or "output" in item:
                    settle(call, item.get("output"), failed=failed)
        elif is_one_of(item.get("role"), _PROMPTS):
            self._in_response.discard(session_id)
        yield from self._waiting.ready(session_id)

    def rest(self) -> Iterator[RecordedCall]:
        return self._waiting.rest()

    def _begin(self, item: Mapping[str, Any], session_id: str) -> None:
        call_id = text(item.get("call_id")) or text(item.get("id"))
        if call_id is not None:
            if (session_id, call_id) in self._known:
                return
            self._known.add((session_id, call_id))

        first = session_id not in self._in_response
        if first:
            self._in_response.add(session_id)
            self._turns[session_id] = self._turns.get(session_id, 0) + 1
        call = RecordedCall(self._source, session_id, 0, *_said(item), turn=self._turns[session_id], id=call_id)
        call.model, call.ts_ms = self._model, self._at_ms
        if first:
            call.tokens_in, call.tokens_out = self._usage
        self._waiting.add(call, call_id)


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


def _said(item: Mapping[str, Any]) -> tuple[str, Any]:
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
