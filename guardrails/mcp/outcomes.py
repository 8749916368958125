"""
Reads an MCP server's answer to a call as an outcome. All of it is read as on the wire, so that it needs no SDK.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import xxhash

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.result.kinds import kind_of_text
from guardrails.core.tools.tool import Tool, from_annotations
from guardrails.core.values.errors import GuardrailsError
from guardrails.core.values.types import ErrorType, Failed
from guardrails.policy.tools import checked_arguments, missing


def hints_of(annotations: Mapping[str, Any] | None) -> dict[str, Any]:
    """
    Returns the fields of `Tool` that a server's *annotations* declare.
    """
    hints = annotations or {}
    declared: dict[str, Any] = dict(from_annotations(hints))
    if hints.get("destructiveHint") is True:
        # What may destroy is neither read-only nor safe to repeat, whatever else is claimed.
        declared["read_only"] = False
    return declared


def outcome_of(
    name: str,
    arguments: Any,
    result: Mapping[str, Any],
    *,
    schema: Mapping[str, Any] | None = None,
    listed: Iterable[str] = (),
) -> Any:
    """
    Returns the outcome of a call of the tool *name*: its value, a `Failed`, or an envelope about wrong *arguments*.

    *schema* is the tool's `inputSchema`, None if the tool is not known; *listed* are the tools that are.
    """
    value = read_mcp(described(result))
    if isinstance(value, Failed):
        return explained(name, arguments, value, kind_of_text(value.message), schema=schema, listed=listed)
    return value


def described(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    *result* with images and other bytes as the number and the hash of them: no model reads base64 as text, and it is not cut.
    """
    content = result.get("content")
    if not isinstance(content, list) or all(isinstance(one, dict) and one.get("type") == "text" for one in content):
        return result
    return {**result, "content": [_described(block) for block in content]}


def explained(
    name: str,
    arguments: Any,
    failed: Failed,
    kind: ErrorType | None,
    *,
    schema: Mapping[str, Any] | None,
    listed: Iterable[str],
) -> Failed | Envelope:
    """
    A failure with the fields that are wrong, if the server says that arguments do not fit. It is the server that judges
    them: servers take more than their schemas say, such as numbers in text.
    """
    if kind == "tool_missing" and schema is None and (known := list(listed)):
        return missing(name, known)
    if kind == "validation" and schema is not None:
        try:
            fitted = checked_arguments(Tool(name=name, parameters=schema), arguments)
        except GuardrailsError:
            fitted = arguments
        if isinstance(fitted, Envelope):
            return fitted
    return failed


def is_question(result: Any) -> bool:
    """
    Returns whether *result* asks the client for input: an object of an SDK, or what is on the wire.
    """
    kind = result.get("resultType") if isinstance(result, dict) else getattr(result, "result_type", None)
    return kind == "input_required" or hasattr(result, "input_required")


def _described(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    resource = block.get("resource")
    if isinstance(block.get("data"), str) and block.get("type") in ("image", "audio"):
        return {**block, "data": _told(block["data"])}
    if isinstance(resource, dict) and isinstance(resource.get("blob"), str):
        return {**block, "resource": {**resource, "blob": _told(resource["blob"])}}
    return block


def _told(data: str) -> str:
    size = len(data.rstrip("=")) * 3 // 4
    return f"{size:,} bytes, xxh3 {xxhash.xxh3_64_hexdigest(data.encode(errors='replace'))}"
