"""
An envelope as the text that the model reads.
"""

import json

from typing import Any, Final, cast

import orjson

from guardrails.core.text.control import cleaned
from guardrails.core.text.truncation import render

from .content import Content
from .merged import begins_object, imitates, imitates_text, is_strict, members, splice, with_fields


MAX_SAID: Final = 8_192
"""Bytes of a message beside the result and the earlier one that a refusal gives back."""
_CAPS: Final = (4_096, 2_048, 1_024, 512, 256)
"""Bytes of one field, tried in turn: with the last of them all fields together are shorter than `MAX_SAID`."""
_NESTED: Final = frozenset({"status", "result", "results", "query_summary", "progress"})
"""Fields of the nested form that are not added to an object."""


def text_of(envelope: Content) -> str:
    """
    Returns the JSON of *envelope*, nested or merged.
    """
    if envelope.merged:
        text = _merged(envelope)
        if text is not None:
            return text
    rendered = envelope.rendered
    if rendered is None and envelope.value is not None:
        rendered = envelope.render()
    shown = fields_of(envelope, None if rendered is None else orjson.Fragment(rendered.payload))
    try:
        written = orjson.dumps(shown)
    except (TypeError, ValueError):
        # A field that a tool's or guard's own code filled with what JSON cannot say.
        shown = {name: _cut(content, _CAPS[2]) for name, content in shown.items()}
        written = orjson.dumps(shown)
    most = MAX_SAID + len(envelope.previous_payload or b"") + (0 if rendered is None else rendered.size)
    if len(written) > most:
        written = orjson.dumps(_bounded(shown))
    text = written.decode()
    # One of these is in every text that has a control character. Spelt out, since every message comes this way.
    if r"\u00" in text or r"\b" in text or r"\f" in text or "\x7f" in text:
        return cleaned(text)
    return text


def _bounded(shown: dict[str, Any]) -> dict[str, Any]:
    """
    Returns the fields *shown* in at most `MAX_SAID` bytes but for what is written already: the longest are cut first.
    """
    made = shown
    for cap in _CAPS:
        made = {name: _cut(content, cap) for name, content in shown.items()}
        said = {name: content for name, content in made.items() if not isinstance(shown[name], orjson.Fragment)}
        if len(orjson.dumps(said)) <= MAX_SAID - len('"previous_result":,"results":,'):
            break
    return made


def _cut(content: Any, cap: int) -> Any:
    if isinstance(content, orjson.Fragment):
        return content
    try:
        if len(orjson.dumps(content)) <= cap:
            return content
    except (TypeError, ValueError):
        pass
    return orjson.Fragment(render(content, cap).payload)


def fields_of(envelope: Content, written: orjson.Fragment | None = None) -> dict[str, Any]:  # noqa: C901  a line for each field
    """
    Returns the fields of *envelope* that are there, in order; its value as it is, or as it is *written*.
    """
    value = envelope.value
    # Field by field, since every call comes this way: a loop over their names takes three times as long.
    shown: dict[str, Any] = {"status": envelope.status}
    if envelope.code is not None:
        shown["code"] = envelope.code
    if envelope.query_summary is not None:
        shown["query_summary"] = envelope.query_summary
    if value is not None:
        shown["results" if isinstance(value, (list, tuple)) else "result"] = value if written is None else written
    if envelope.total_matches is not None:
        shown["total_matches"] = envelope.total_matches
    if envelope.is_complete is not None:
        shown["is_complete"] = envelope.is_complete
    if envelope.cut is not None:
        shown["truncated"] = True
        shown["original_bytes"] = envelope.cut
    if envelope.sandbox is not None:
        shown["sandbox"] = envelope.sandbox
    if envelope.error_type is not None:
        shown["error_type"] = envelope.error_type
    if envelope.error_message is not None:
        shown["error_message"] = envelope.error_message
    if envelope.http_status is not None:
        shown["http_status"] = envelope.http_status
    if envelope.tried is not None and envelope.tried.attempts > 1:
        shown["attempts"] = envelope.tried.attempts
    if envelope.errors is not None:
        shown["errors"] = envelope.errors
    if envelope.user_facing_hint is not None:
        shown["user_facing_hint"] = envelope.user_facing_hint
    if envelope.message is not None:
        shown["message"] = envelope.message
    if envelope.retryable is not None:
        shown["retryable"] = envelope.retryable
    if envelope.retryable_after_correction is not None:
        shown["retryable_after_correction"] = envelope.retryable_after_correction
    if envelope.retry_after_ms is not None:
        shown["retry_after_ms"] = envelope.retry_after_ms
    if envelope.max_retries_remaining is not None:
        shown["max_retries_remaining"] = envelope.max_retries_remaining
    if envelope.retry_success_probability is not None:
        shown["retry_success_probability"] = envelope.retry_success_probability
    if envelope.next_action is not None:
        shown["next_action"] = envelope.next_action
    if envelope.next_action_hint is not None:
        shown["next_action_hint"] = envelope.next_action_hint
    if envelope.limit_message is not None:
        shown["limit_reached"] = True
        shown["limit_message"] = envelope.limit_message
    if envelope.previous_payload is not None:
        shown["previous_result"] = orjson.Fragment(envelope.previous_payload)
    if envelope.previous_result_outdated is not None:
        shown["previous_result_outdated"] = envelope.previous_result_outdated
    if envelope.progress is not None:
        shown["progress"] = envelope.progress
    for name in envelope.left_out:
        shown.pop(name, None)
    return shown


def _merged(envelope: Content) -> str | None:
    if envelope.status != "success" and (envelope.status != "error" or not isinstance(envelope.value, dict | str)):
        return None
    own = _own(envelope)
    if own is None:
        return None
    text, strict = own
    if envelope.status == "error":
        return _merged_failure(envelope, text) if strict else None
    said = said_of(envelope)
    return with_fields(text if strict else json.dumps(text, ensure_ascii=False), _added(said)) if said else text


def _own(envelope: Content) -> tuple[str, bool] | None:
    """
    Returns the tool's own text, and whether it is JSON for every parser. Returns None if it must be nested.
    """
    from guardrails.core.result.redaction import sanitise

    value, rendered = envelope.value, envelope.render()
    if rendered.text is None:
        text = cleaned(rendered.payload.decode())
        named = type(value) is dict and all(type(key) is str for key in value)
        return None if (imitates(value) if named else imitates_text(text)) else (text, True)
    text = sanitise(rendered.text)
    strict = text == rendered.text and is_strict(text)
    return None if begins_object(text) and (not strict or imitates_text(text)) else (text, strict)


def _merged_failure(envelope: Content, text: str) -> str | None:
    """
    Returns the object *text* of a tool that is a failure, with what is said of that. Returns None if it is no object,
    or says so itself.
    """
    added = {name: said for name, said in fields_of(envelope).items() if name not in _NESTED}
    try:
        own = {key for key, *_ in members(text)}
    except (ValueError, RecursionError):
        return None
    return None if own & added.keys() else splice(text, _added(added))


def _added(said: dict[str, Any]) -> dict[str, Any]:
    """
    Returns the fields *said*, cleaned and within bounds.
    """
    from guardrails.core.result.redaction import sanitise

    cut = _bounded({name: sanitise(one) if isinstance(one, str) else one for name, one in said.items()})
    return cast("dict[str, Any]", orjson.loads(orjson.dumps(cut)))


def said_of(envelope: Content) -> dict[str, Any]:
    """
    Returns the words of *envelope* beside the result, for hosts that keep a form of their own for the result. A failure
    gives all of its fields, a success only those that it says unasked. The dict is empty if there are none.
    """
    if envelope.status != "success":
        every = fields_of(envelope).items()
        return {name: content for name, content in every if name == "status" or name not in _NESTED}
    said: dict[str, Any] = {}
    if envelope.is_complete is False:
        said["is_complete"] = False
    if envelope.cut is not None:
        said |= {"truncated": True, "original_bytes": envelope.cut}
    if envelope.sandbox is not None:
        said["sandbox"] = envelope.sandbox
    if (envelope.is_complete is False or envelope.nudged) and envelope.next_action_hint is not None:
        said["next_action_hint"] = envelope.next_action_hint
    if envelope.limit_message is not None:
        said["limit_reached"] = True
        said["limit_message"] = envelope.limit_message
    return {name: content for name, content in said.items() if name not in envelope.left_out}
