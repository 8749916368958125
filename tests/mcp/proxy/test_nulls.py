"""
Null in the arguments of a call that passes through a proxy: many servers read it as if nothing was said.
"""

from typing import Any

from guardrails.mcp.proxy.listed import Tools
from tests.tables import table


NUMBER = {"type": "integer"}


def told(arguments: dict[str, Any], **schema: Any) -> list[str]:
    """
    The fields of *arguments* that are wrong.
    """
    tools = Tools()
    whole = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, **schema}
    tools.hear([{"name": "add", "inputSchema": whole}])
    spec = tools.declared("add").arguments()
    assert spec is not None
    kept, problems = spec.check(arguments)
    assert kept == arguments
    return [problem.field for problem in problems]


@table("schema", [{}, {"additionalProperties": False}, {"required": ["a"]}])
def test_null_in_the_place_of_a_member_that_may_be_left_out_is_left_to_the_server(schema: dict[str, Any]) -> None:
    assert told({"a": 1, "b": None}, **schema) == []


def test_null_in_the_place_of_a_member_that_is_required_is_told() -> None:
    assert told({"a": None, "b": None}, required=["a"]) == ["a", "b"]
