"""
The arguments of a tool: one definition gives the schema the model sees and the check right before the tool runs.

* A definition is a pydantic model, a function or a JSON Schema. The first two coerce before the call is signed, a JSON
  Schema only checks.
* A mistake is told with its path, in words for a model, never with its value. All are told at once, at most twenty; of
  more than 1,000 values against a JSON Schema the first, of more than 30,000 none.
* JSON text in the place of an array or object is read once, where the schema says so.
* A check never raises. A definition that cannot be read raises PolicyError when it is made (`arguments_of`), or, of a third
  party's tool, is one warning and an unchecked tool (`foreign_arguments`).
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Protocol

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.logs import warn_once
from guardrails.core.values.types import Problem


class Arguments(Protocol):
    """
    The definition of a tool's arguments.
    """

    def schema(self) -> dict[str, Any]:
        """
        Returns the JSON Schema (draft 2020-12) of an object, as providers take it for the `parameters` of a tool; same
        order each time.
        """
        ...

    def check(self, arguments: object) -> tuple[object, tuple[Problem, ...]]:
        """
        Returns the arguments for the tool and no problems, or *arguments*, a dict, as they came and their problems; never
        raises.
        """
        ...


def arguments_of(definition: Callable[..., Any] | Mapping[str, Any], *, hidden: Collection[str] = ()) -> Arguments:
    """
    Returns the arguments that *definition* describes: a pydantic model, a function (without its parameters *hidden*,
    which the host passes), or a JSON Schema. The library that it needs, pydantic or jsonschema-rs, is imported here,
    and the check is compiled here, once.

    Raises PolicyError if *definition* does not describe arguments.
    """
    if isinstance(definition, Mapping):
        from .json_schema import SchemaArguments

        return SchemaArguments(definition)
    if isinstance(definition, type) and hasattr(definition, "model_json_schema"):
        from .typed import ModelArguments

        return ModelArguments(definition)
    if callable(definition):
        from .typed import FunctionArguments

        return FunctionArguments(definition, hidden)
    wanted = "arguments are defined by a pydantic model, a function or a JSON Schema"
    raise PolicyError([f"{wanted}, not by `{definition!r:.80}`"])


def foreign_arguments(tool: str, definition: Any, read: Callable[[Any], Arguments] = arguments_of) -> Arguments | None:
    """
    Returns the arguments of a third party's *tool*, which *read* makes of its *definition*. One that is not valid is
    told once in the log, and its tool runs unchecked: the model sees the names of its properties alone, or what the
    host says (None).
    """
    if definition is None:
        return None
    try:
        return read(definition)
    except Exception as error:  # the definition is the code of others
        warn_once(f"arguments {tool:.100}", "the arguments of `%s` are not checked: %s", tool, error)
    with suppress(Exception):  # it may have none
        names: Any = {name: {} for name, _ in definition["properties"].items() if isinstance(name, str)}
        return arguments_of({"type": "object", "properties": names})
    return None
