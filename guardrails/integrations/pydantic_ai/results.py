"""
The results and errors of pydantic-ai's tools as a session reads them, and the session's envelopes as the model reads
them.
"""

from dataclasses import replace
from typing import Any

from guardrails.core.arguments.typed import problems_of
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.kinds import kind_of_text
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed, Problem
from guardrails.hooks.results import beside
from guardrails.integrations.hosting import lines


with needs("pydantic-ai", "this adapter"):
    from pydantic import ValidationError
    from pydantic_ai import ToolReturn
    from pydantic_ai import exceptions as host
    from pydantic_ai.messages import is_multi_modal_content as is_file
    from pydantic_ai.tools import ToolDefinition


def failed(error: Exception) -> Failed:
    """
    Returns the failure that a tool told. One that asks for a retry means another call than this.
    """
    said = error.__cause__ if isinstance(error.__cause__, (host.ModelRetry, host.ToolFailed)) else error
    kind = kind_of_text(str(said)) or ("validation" if isinstance(said, host.ModelRetry) else None)
    return Failed(str(said), error_type=kind)


def read(result: Any) -> Any:
    """
    *result* as a session reads it: of a file, which one it is.
    """
    if isinstance(result, ToolReturn):
        return read(result.return_value)
    if isinstance(result, list) and any(map(is_file, result)):
        return lines(map(read, result))
    return f"{result.kind} {result.identifier}" if is_file(result) else result


def is_plain(result: Any, tool: ToolDefinition | None = None) -> bool:
    """
    Whether the model may read an envelope in the place of *result*: it has no files, and nobody was told of its form.
    """
    value = result.return_value if isinstance(result, ToolReturn) else result
    told = tool is not None and (tool.tool_kind is not None or tool.include_return_schema)
    return not told and not any(map(is_file, value if isinstance(value, list) else (value,)))


def shown(result: Any, envelope: Envelope, tool: ToolDefinition) -> Any:
    """
    *result* as the model reads it, in the host's own form if it has one; then with what *envelope* says beside it.
    """
    if is_plain(result, tool):
        text = envelope.to_json()
        return replace(result, return_value=text) if isinstance(result, ToolReturn) else text
    said = beside(envelope)
    if said is None:
        return result
    made = result if isinstance(result, ToolReturn) else ToolReturn(result)
    content = [made.content] if isinstance(made.content, str) else made.content or ()
    return replace(made, content=[*content, said])


class Wrong:
    """
    The host's objections to the arguments of one call, as their check, whatever it is asked about.
    """

    def __init__(self, error: "ValidationError | host.ModelRetry | host.ToolFailed", schema: dict[str, Any]) -> None:
        self._error, self._schema = error, schema

    def schema(self) -> dict[str, Any]:
        return self._schema

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        if not isinstance(self._error, ValidationError):
            return arguments, (Problem("", self._error.message, "value"),)
        return arguments, problems_of(self._error, arguments if isinstance(arguments, dict) else {}, self._schema)
