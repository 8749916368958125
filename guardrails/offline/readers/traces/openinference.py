"""
The attributes of OpenInference, as those of OpenTelemetry's GenAI convention.
"""

import re

from collections.abc import Mapping
from typing import Any, Final

from guardrails.offline.readers.text.fields import arguments_of, mapping, text
from guardrails.offline.readers.text.parsing import parse

from .spans import Made, Span


_KIND: Final = "openinference.span.kind"
_CALL: Final = re.compile(
    r"llm\.output_messages\.(\d{1,4})\.message\.tool_calls\.(\d{1,4})\.tool_call\.(id|function\.name|function\.arguments)"
)
_HIDDEN: Final = "__REDACTED__"
"""What stands for a text that was asked to be left out."""
_MAX_PARSED: Final = 1 << 20


def openinference_span(span: Span) -> Span | None:
    """
    Returns *span* with the attributes that a reader of spans looks for. Returns None if it is no call of a tool or of a
    model.
    """
    said = span.attributes
    session_id = text(said.get("session.id")) or span.session_id
    if said.get(_KIND) == "LLM":
        known = {
            "gen_ai.response.model": said.get("llm.model_name"),
            "gen_ai.usage.input_tokens": said.get("llm.token_count.prompt"),
            "gen_ai.usage.output_tokens": said.get("llm.token_count.completion"),
        }
        return span._replace(session_id=session_id, attributes=known, made=_made(said))

    name = text(said.get("tool.name"))
    if said.get(_KIND) != "TOOL" or name is None:
        return None

    arguments, result = (
        None if (value := said.get(f"{key}.value")) == _HIDDEN else value for key in ("input", "output")
    )
    known = {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": arguments}
    message = _message(said)
    if message:
        result = message.get("content")
        known["gen_ai.tool.call.id"] = message.get("tool_call_id")
    known["gen_ai.tool.call.result"] = result
    failed = True if message.get("status") == "error" else None
    return span._replace(session_id=session_id, is_call=True, attributes=known, by_text=True, failed=failed)


def _message(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    The message of LangChain that a result is wrapped in; an empty one if it is not.
    """
    written = said.get("output.value")
    if type(written) is not str or not written.startswith('{"type": "tool"') or len(written) > _MAX_PARSED:
        return {}

    try:
        found = mapping(parse(written.encode("utf-8", "surrogatepass")))
    except ValueError:
        return {}
    message = mapping(found.get("data")) or found
    return message if "content" in message and "tool_call_id" in message else {}


def _made(said: Mapping[str, Any]) -> tuple[Made, ...]:
    """
    Returns the calls in a model's response, in its order.
    """
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for key, value in said.items():
        if key.startswith("llm.output_messages.") and (place := _CALL.fullmatch(key)):
            found.setdefault((int(place[1]), int(place[2])), {})[place[3]] = value
    calls = [found[place] for place in sorted(found)]
    return tuple(
        Made(text(call.get("id")), name, arguments_of(call.get("function.arguments")))
        for call in calls
        if (name := text(call.get("function.name")))
    )
