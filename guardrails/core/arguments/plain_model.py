"""
Validate a pydantic model without code of its own straight into a dict.

Not building the model saves 0.3 of 1.1 us a call. The rules are the model's: the same fields in the same configuration.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final


if TYPE_CHECKING:
    from pydantic import BaseModel


_NEUTRAL_CONFIG: Final = {
    "extra",
    "frozen",
    "json_schema_extra",
    "populate_by_name",
    "str_strip_whitespace",
    "title",
    "use_attribute_docstrings",
    "validate_by_alias",
    "validate_by_name",
}
"""Settings that mean the same for a typed dict as for a model, or nothing."""


def dict_validator(definition: "type[BaseModel]") -> Callable[..., Any] | None:
    """
    Returns a function that does the work of `validate_python` of *definition* and gives a dict. Returns None if the
    model has a say in the result. It has one by validators, `__init__`, `model_post_init`, a core schema of its own,
    defaults made from other fields, or extra fields that it keeps.
    """
    from pydantic import BaseModel, ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    config = definition.model_config
    written = definition.__pydantic_decorators__
    own = (
        written.validators,
        written.field_validators,
        written.root_validators,
        written.model_validators,
        definition.__pydantic_post_init__,
        definition.__init__ is not BaseModel.__init__,
        definition.__get_pydantic_core_schema__.__func__ is not BaseModel.__get_pydantic_core_schema__.__func__,  # type: ignore[attr-defined]
        any(field.default_factory_takes_validated_data for field in definition.model_fields.values()),
        not _NEUTRAL_CONFIG.issuperset(config),
        config.get("extra") == "allow",
    )

    if any(own):
        return None

    typed_dict: Any = TypedDict
    shape = typed_dict(definition.__name__, {n: Annotated[f.annotation, f] for n, f in definition.model_fields.items()})
    shape.__pydantic_config__ = ConfigDict(**config)

    return TypeAdapter(shape).validator.validate_python
