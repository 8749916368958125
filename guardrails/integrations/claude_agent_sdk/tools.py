"""
The tools of an in-process server of Claude Agent SDK, as a session knows them.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_type_hints

from pydantic import PydanticUserError, create_model

from guardrails.core.arguments import foreign_arguments
from guardrails.core.tools.tool import Tool


def declared(tool: Any, server: str | None) -> Tool:
    """
    A *tool* of the SDK as a session knows it, by the name that Claude Code gives it.
    """
    hints = {} if tool.annotations is None else tool.annotations.model_dump(by_alias=True, exclude_none=True)
    name = tool.name if server is None else f"mcp__{server}__{tool.name}"
    return Tool(name=name, parameters=foreign_arguments(name, _definition(tool.input_schema))).override(
        {"annotations": hints}
    )


def _definition(schema: Any) -> Any:
    if isinstance(schema, Mapping) and "type" in schema and "properties" in schema:
        return schema
    with suppress(PydanticUserError, TypeError, ValueError, AttributeError, NameError):
        required = getattr(schema, "__required_keys__", schema)
        hints = schema if isinstance(schema, Mapping) else get_type_hints(schema)
        fields: dict[str, Any] = {name: (kind, ... if name in required else None) for name, kind in hints.items()}
        return create_model("Arguments", **fields)
    return None
