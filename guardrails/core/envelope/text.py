"""
An envelope as the text that the model reads.
"""

from typing import Any, Final

import orjson

from guardrails.core.text.truncation import render

from .content import Content
from .merged import imitates, imitates_text, members, splice, with_fields


_NESTED: Final = frozenset({"status", "result", "results", "query_summary", "progress"})
"""Fields of the nested form that are not added to an object."""


def text_of(envelope: Content) -> str:
    """
    The JSON of *envelope*, nested or merged.
    """
    if envelope.merged:
        text = _merged(envelope)
        if text is not None:
            return text
    rendered = envelope.rendered
    if rendered is None and (envelope.status == "success" or envelope.value is not None):
        rendered = envelope.render()
    shown = fields_of(envelope, None if rendered is None else orjson.Fragment(rendered.payload))
    try:
        return orjson.dumps(shown).decode()
    except (TypeError, ValueError):
        # A field that a tool's or guard's own code filled with what JSON cannot say.
        return orjson.dumps(
            {
                name: content if isinstance(content, orjson.Fragment) else orjson.Fragment(render(content).payload)
                for name, content in shown.items()
            }
        ).decode()


def fields_of(envelope: Content, written: orjson.Fragment | None = None) -> dict[str, Any]:
    """
    The fields of *envelope* that are there, in order; its value as it is, or as it is *written*.
    """
    value = envelope.value
    # Field by field, since every call comes this way: a loop over their names takes three times as long.
    shown: dict[str, Any] = {"status": envelope.status}
    if envelope.code is not None:
        shown["code"] = envelope.code
    if envelope.query_summary is not None:
        shown["query_summary"] = envelope.query_summary
    if value is not None or envelope.status == "success":
        shown["results" if isinstance(value, (list, tuple)) else "result"] = value if written is None else written
    if envelope.total_matches is not None:
        shown["total_matches"] = envelope.total_matches
    if envelope.is_complete is not None:
        shown["is_complete"] = envelope.is_complete
    if envelope.error_type is not None:
        shown["error_type"] = envelope.error_type
    if envelope.error_message is not None:
        shown["error_message"] = envelope.error_message
    if envelope.http_status is not None:
        shown["http_status"] = envelope.http_status
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


def _merged_failure(envelope: Content) -> str | None:
    """
    The object of a tool that is a failure, as it was, with what is said of that.
    """
    if envelope.status != "error" or not isinstance(envelope.value, dict | str):
        return None
    rendered = envelope.render()
    text = rendered.payload.decode() if rendered.text is None else rendered.text
    added = {name: said for name, said in fields_of(envelope).items() if name not in _NESTED}
    try:
        own = {key for key, *_ in members(text)}
    except (ValueError, RecursionError):
        return None
    return None if imitates_text(text) or own & added.keys() else splice(text, added)


def _merged(envelope: Content) -> str | None:
    if envelope.status != "success":
        return _merged_failure(envelope)
    value, rendered = envelope.value, envelope.render()
    text = rendered.payload.decode() if rendered.text is None else rendered.text
    if imitates(value) if isinstance(value, dict) else imitates_text(text):
        return None
    added = _said(envelope)
    return with_fields(text, added) if added else text


def _said(envelope: Content) -> dict[str, Any]:
    """
    The fields that the merged form adds: only those that say something.
    """
    said: dict[str, Any] = {}
    if envelope.is_complete is False:
        said["is_complete"] = False
    if (envelope.is_complete is False or envelope.nudged) and envelope.next_action_hint is not None:
        said["next_action_hint"] = envelope.next_action_hint
    if envelope.limit_message is not None:
        said["limit_reached"] = True
        said["limit_message"] = envelope.limit_message
    return {name: content for name, content in said.items() if name not in envelope.left_out}
