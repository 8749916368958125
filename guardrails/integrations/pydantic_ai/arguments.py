"""
Arguments that pydantic-ai found wrong.
"""

from typing import Any

from guardrails.core.arguments.typed import problems_of
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed, Problem


with needs("pydantic-ai", "this adapter"):
    from pydantic import ValidationError
    from pydantic_ai import exceptions as host


class Wrong:
    """
    The host's objections to the arguments of one call, as their check.
    """

    def __init__(self, error: "ValidationError | host.ModelRetry | host.ToolFailed", schema: dict[str, Any]) -> None:
        self._error = error
        self._schema = schema

    def schema(self) -> dict[str, Any]:
        """
        As the host has it.
        """
        return self._schema

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        """
        The same for whatever it is asked about.
        """
        if not isinstance(self._error, ValidationError):
            return arguments, (Problem("", self._error.message, "value"),)
        return arguments, problems_of(self._error, arguments if isinstance(arguments, dict) else {}, self._schema)

    async def told(self, _: str, __: Any) -> Failed:
        """
        Returns the failure that a policy without a check of arguments is told instead. The tool does not run then
        either.
        """
        return Failed(str(self._error), error_type="validation")
