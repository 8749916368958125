"""
The arguments of a tool: one definition gives the schema the model sees and the check right before the tool runs.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from guardrails.core.values.errors import PolicyError
from guardrails.core.values.types import Problem

from .problems import advice, only_user


if TYPE_CHECKING:
    from pydantic import BaseModel

    from .function import FunctionArguments
    from .json_schema import SchemaArguments
    from .typed import ModelArguments


__all__ = ["Arguments", "advice", "arguments_of", "only_user"]


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
        Returns the arguments for the tool and no problems, or *arguments* as they came and their problems; never
        raises.

        None counts as {}; text, lists and the rest are a problem of the field "".
        """
        ...


def arguments_of(
    definition: "type[BaseModel] | Callable[..., Any] | Mapping[str, Any]", *, hidden: Collection[str] = ()
) -> "ModelArguments | FunctionArguments | SchemaArguments":
    """
    Returns the arguments that *definition* describes: a pydantic model, a function (without its parameters *hidden*,
    which the host passes), or a JSON Schema. The library that it needs, pydantic or jsonschema-rs, is imported here,
    and the check is compiled here, once.

    Raises PolicyError if *definition* does not describe arguments.
    """
    if isinstance(definition, Mapping):
        from .json_schema import SchemaArguments

        return SchemaArguments(definition)

    if (
        isinstance(definition, type)
        and hasattr(definition, "__pydantic_validator__")
        and hasattr(definition, "model_fields")
    ):
        from .typed import ModelArguments

        return ModelArguments(definition)

    if callable(definition):
        from .function import FunctionArguments

        return FunctionArguments(definition, hidden)

    raise PolicyError(
        [f"arguments are defined by a pydantic model, a function or a JSON Schema, not by `{definition!r:.80}`"]
    )
