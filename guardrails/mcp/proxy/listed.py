"""
The tools that a server lists: their declarations, the check of their arguments, and room for a note in their answers.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guardrails.core.arguments import foreign_arguments
from guardrails.core.arguments.json_schema import SchemaArguments
from guardrails.core.arguments.problems import Checked
from guardrails.core.tools.tool import Tool
from guardrails.mcp.answers import BESIDE, UNKNOWN
from guardrails.mcp.outcomes import hints_of


if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


MAX_TOOLS: Final = 10_000
_NOTE: Final[dict[str, Any]] = {"type": "object", "description": "What is to be known of this result beside it."}


class Listed(NamedTuple):
    """
    One tool as its server lists it.
    """

    tool: Tool
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | None
    """As the client was told it, with room for a note; None: the tool promises nothing of what it answers."""


class ServerArguments(SchemaArguments):
    """
    Arguments by the schema of a server, as far as the schema alone is enough to know that they are wrong.

    Text in the place of a number, a list or a date is left to the server: many read such text. So is null in the place of a
    member that may be left out.
    """

    __slots__ = ()

    def check(self, arguments: object) -> Checked:
        given, problems = super().check(arguments)
        if problems and isinstance(given, dict):
            there = {name: value for name, value in given.items() if value is not None}
            with suppress(Exception):  # what no check can read has its problem already
                return given, problems if self._wrong(self._validator.iter_errors(there)) else ()
        return given, problems

    def _wrong(self, errors: Iterable["ValidationError"]) -> bool:
        return any(map(self._is_wrong, errors))

    def _is_wrong(self, error: "ValidationError") -> bool:
        kind: Any = error.kind
        name = type(kind).__name__
        if name in ("AnyOf", "OneOfNotValid"):
            return all(map(self._wrong, kind.context))
        return name != "Format" and not (name == "Type" and isinstance(error.instance, str))


class Tools:
    """
    The tools of one server, as far as they were listed.
    """

    def __init__(self) -> None:
        self._known: dict[str, Listed] = {}
        self._checked: dict[str, Tool] = {}
        """With the check of their arguments, once they are called."""

    def hear(self, offered: Iterable[Any], held: Mapping[str, str] = MappingProxyType({})) -> None:
        """
        Know the tools that are *offered*; *held* says why some are held, by their names.
        """
        for one in offered:
            name = one.get("name") if isinstance(one, dict) else None
            if type(name) is not str:
                continue
            annotations, given = one.get("annotations"), one.get("outputSchema")
            hints = hints_of(annotations if isinstance(annotations, dict) else None)
            schema = one.get("inputSchema")
            made = Listed(
                Tool(name=name, held=held.get(name, ""), **hints),
                schema if isinstance(schema, dict) and schema else None,
                roomy(given) if isinstance(given, dict) else None,
            )
            if self._known.get(name) != made:
                self._known[name] = made
                self._checked.pop(name, None)
        while len(self._known) > MAX_TOOLS:
            del self._known[next(iter(self._known))]

    def forget_arguments(self) -> None:
        """
        Check no arguments until the tools are listed again: the server says that they have changed.
        """
        self._known = {name: one._replace(input_schema=None) for name, one in self._known.items()}
        self._checked = {}

    def released(self, name: str) -> Tool:
        """
        The tool *name*, which is held no longer. Its arguments are not checked until it is listed again.
        """
        known = self._known[name]
        self._known[name] = known._replace(tool=replace(known.tool, held=""), input_schema=None)
        self._checked.pop(name, None)
        return self.declared(name)

    def of(self, name: str) -> Listed | None:
        """
        The tool *name*. Returns None if it was not listed.
        """
        return self._known.get(name)

    def __iter__(self) -> Iterator[str]:
        """
        The names of all of them.
        """
        return iter(self._known)

    def declared(self, name: str) -> Tool:
        """
        Returns the declaration of the tool *name*, with the check of its arguments.
        """
        made = self._checked.get(name)
        if made is None:
            listed = self._known.get(name)
            if listed is None:
                return Tool(name=name)
            made = self._checked[name] = _checked(listed)
        return made

    def output_schema(self, name: str) -> Mapping[str, Any] | None:
        """
        Returns the schema that the client was told of the structured content of the tool *name*. If it was told none,
        the schema fits no value.
        """
        listed = self._known.get(name)
        return UNKNOWN if listed is None else listed.output_schema


def roomy(schema: dict[str, Any]) -> dict[str, Any]:
    """
    The `outputSchema` of a tool with room for a note; *schema* itself if it is not of an object, or has no room.
    """
    fields = schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(fields, dict) or BESIDE in fields:
        return schema
    return {**schema, "properties": {**fields, BESIDE: _NOTE}}


def with_room(offered: list[Any]) -> list[Any] | None:
    """
    The tools *offered* with room for notes in what they answer. Returns None if that changes nothing.
    """
    made = [
        {**one, "outputSchema": roomy(schema)}
        if isinstance(one, dict) and isinstance(schema := one.get("outputSchema"), dict)
        else one
        for one in offered
    ]
    return made if made != offered else None


def _checked(listed: Listed) -> Tool:
    tool = listed.tool
    return replace(tool, parameters=foreign_arguments(tool.name, listed.input_schema, ServerArguments))
