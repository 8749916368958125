"""
Models that are validated without being built.
"""

from typing import Annotated, Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from guardrails.core.arguments.plain_model import dict_validator
from tests.tables import table


class Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: Annotated[str, Field(min_length=1, max_length=3)]
    limit: int = Field(10, ge=1, alias="max")
    tags: list[str] = Field(default_factory=list)


class Loose(BaseModel):
    name: str
    ratio: float | None = None


class Checked(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def accept(cls, name: str) -> str:
        return name


class Whole(BaseModel):
    name: str

    @model_validator(mode="before")
    @classmethod
    def accept(cls, data: Any) -> Any:
        return data


class Inherited(Checked):
    other: int = 0


class Built(BaseModel):
    name: str

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)


class Finished(BaseModel):
    name: str

    def model_post_init(self, context: Any, /) -> None:
        pass


class Derived(BaseModel):
    name: str
    copy_of: str = Field(default_factory=lambda data: data["name"])


class Kept(BaseModel, extra="allow"):
    name: str


class Configured(BaseModel, alias_generator=str.upper):
    name: str


class Schematic(BaseModel):
    name: str

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(source)


@table("definition", [Checked, Whole, Inherited, Built, Finished, Derived, Kept, Configured, Schematic])
def test_a_model_with_a_say_in_it_is_built(definition: type[BaseModel]) -> None:
    assert dict_validator(definition) is None


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 12), st.floats(), st.sampled_from(["a", " ab ", "abcd", "7", "", "x\n"])
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["name", "limit", "max", "tags", "ratio", "other"]), VALUES | st.lists(VALUES, max_size=2)
)


@table("definition", [Plain, Loose])
@table("by_name", [None, True])
@given(arguments=ARGUMENTS)
def test_a_plain_model_is_validated_as_if_it_were_built(
    definition: type[BaseModel], by_name: bool | None, arguments: dict[str, Any]
) -> None:
    validate = dict_validator(definition)
    assert validate is not None

    def outcome(validator: Any) -> Any:
        try:
            result = validator(arguments, by_name=by_name)
        except ValidationError as error:
            return repr(error.errors(include_url=False))

        return repr(result if isinstance(result, dict) else result.__dict__)

    assert outcome(validate) == outcome(definition.__pydantic_validator__.validate_python)
