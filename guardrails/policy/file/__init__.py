"""
Policy files: `version: 1`, the policies it extends, the settings; checked with all mistakes of all files at once.
"""

import json

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from guardrails.core.values.errors import PolicyError

from .extends import Document, read
from .folder import find, names
from .schema import OtherNames, Schema, json_schema
from .yaml_position import MAX_MISTAKES, Mistake, Node, plain


if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


__all__ = [
    "Document",
    "OtherNames",
    "Schema",
    "find",
    "json_schema",
    "names",
    "read",
    "validate",
]

T = TypeVar("T")


def validate(document: Document, adapter: "TypeAdapter[T]") -> T:
    """
    Returns the settings that *adapter* makes of the data of *document*, which it is given as JSON.

    Each file is checked by itself too, so that no mistake hides behind a file that replaces it. Raises PolicyError with
    every mistake, file by file, each as `file:line:column: message`, the source line and a caret.
    """
    from pydantic import ValidationError

    settings: list[T] = []
    failures: list[tuple[Node, ValidationError, bool]] = []
    roots = [(part, True) for part in document.parts if part is not document.root]

    if document.root is not None:
        roots.append((document.root, False))

    for root, partial in roots:
        try:
            settings.append(adapter.validate_json(json.dumps(plain(root))))
        except ValidationError as error:
            failures.append((root, error, partial))

    mistakes = [*document.mistakes, *_explained(failures, adapter, document.other_names)]

    if mistakes or document.root is None:
        raise PolicyError([str(mistake) for mistake in _in_order(mistakes, document)])

    return settings[-1]


def _explained(
    failures: "list[tuple[Node, ValidationError, bool]]", adapter: "TypeAdapter[Any]", other_names: OtherNames
) -> Iterator[Mistake]:
    if not failures:
        return

    from pydantic import PydanticUserError

    from .mistakes import find_mistakes

    try:
        schema = json_schema(adapter, other_names)
    except PydanticUserError:
        schema = {}

    for root, error, partial in failures:
        errors = error.errors(include_url=False)

        if not partial and len(failures) > 1:
            # Each rule was checked in its own file.
            errors = [each for each in errors if each["loc"][:1] != ("tools",) or len(each["loc"]) == 1]
        yield from find_mistakes(errors[:MAX_MISTAKES], root, schema, partial=partial)

        if len(errors) > MAX_MISTAKES:
            yield Mistake(
                root.position, f"more than {MAX_MISTAKES} mistakes: {len(errors) - MAX_MISTAKES} are not shown"
            )


def _in_order(mistakes: list[Mistake], document: Document) -> list[Mistake]:
    order = {id(source): place for place, source in enumerate(document.sources)}

    return sorted(dict.fromkeys(mistakes), key=lambda m: (order[id(m.position.source)], *m.position[1:], m.message))
