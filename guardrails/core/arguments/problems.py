"""
Problems with the arguments of a call, in words that a model can act on, and the next step.
"""

import json

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from guardrails.core.text.signature import parse_arguments
from guardrails.core.values.schema import suggestion
from guardrails.core.values.types import Problem


MAX_PROBLEMS: Final = 20
"""Problems of one call that are told; beyond, the last one says that there are more."""
MAX_MESSAGE: Final = 200
"""Characters of one message."""
_READ: Final = ("must be an array", "must be an object")
_MAX_NAME: Final = 64
_MAX_COMPARED: Final = 50

Path = tuple[str | int, ...]
Checked = tuple[object, tuple[Problem, ...]]

_TYPES: Final = (dict, list, tuple, str, bool, int, float, type(None))
_NAMES: Final = ["an object", "an array", "an array", "a string", "a boolean", "an integer", "a number", "null"]
_TYPE_NAMES: Final = dict(zip(_TYPES, _NAMES, strict=True))


def read_arguments(given: Any, *, required: bool) -> Checked:
    """
    Returns the arguments that a model or a host has *given*: a mapping, a pydantic model, None for none, or JSON text, also
    of such text. What is no object is a free-form input, or where one is *required* a problem.
    """
    read: tuple[Any, str | None] = parse_arguments(given) if type(given) is str else (given, None)
    value, wrong = read
    if type(value) is dict:
        return value, ()
    if wrong is not None and (required or given.lstrip().startswith("{")):
        return given, (Problem("", wrong, "json"),)
    if not required:
        return {} if given is None else given, ()
    twice = issubclass(type(value), str)
    # What raises while it is looked at is one more thing that is no object.
    with suppress(Exception):
        made = json.loads(value) if twice else value
        if made is None or isinstance(made, Mapping) or hasattr(type(made), "model_fields"):
            return dict(made or {}), ()
    wrong = "a JSON object, not text" if twice else f"an object, not {type_name(value)}"
    return value, (Problem("", f"the arguments must be {wrong}", "json" if twice else "type"),)


def mended(check: Callable[[object], Checked], given: Any, problems: tuple[Problem, ...]) -> Checked:
    """
    Returns *given* and its *problems*, or what *check* says of it once JSON text is read in each place where *problems*
    say that an array or object belongs.
    """
    made = given
    for field, message, _ in problems:
        # What raises while it is looked at is no JSON text.
        with suppress(Exception):
            made = _read(made, field.split("."), message.partition(", not ")[0])
    result, left = (given, problems) if made is given else check(made)
    return (given, left) if left else (result, ())


def _read(value: Any, path: Sequence[str], wanted: str) -> Any:
    """
    Returns *value* with the JSON text at *path* in it read, if it is of a *wanted* type. Raises ValueError if it is not.
    """
    if not path:
        made = json.loads(value)
        if not isinstance(made, dict | list) or type_name(made) not in wanted:
            raise ValueError
        return made
    key: Any = path[0] if isinstance(value, dict) else int(path[0])
    copied = value.copy()
    copied[key] = _read(value[key], path[1:], wanted)
    return copied


def type_name(value: object) -> str:
    """
    Returns the JSON type of *value* with its article, or the name of its Python class.
    """
    # Past what a metaclass may do to the name.
    return _TYPE_NAMES.get(type(value)) or f"`{clean(type.__dict__['__name__'].__get__(type(value)), _MAX_NAME)}`"


def dotted(path: Iterable[object]) -> str:
    """
    Returns *path* as the field of a problem, "" for the arguments as a whole.
    """
    return clean(".".join(clean(str(part), _MAX_NAME) for part in path))


def clean(text: str, limit: int = MAX_MESSAGE) -> str:
    """
    Returns *text* on one line, at most *limit* characters, without control characters and lone surrogates.
    """
    if len(text) <= limit and text.isprintable():
        return text
    text = "".join(c if c.isprintable() else "?" for c in " ".join(text[: 4 * limit].split()))
    return text if len(text) <= limit else text[: limit - 3] + "..."


def capped(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """
    Returns *problems* without repeats, at most `MAX_PROBLEMS`, with messages of at most `MAX_MESSAGE` characters.

    Reads no further than it tells, so that a call with a million mistakes costs no more than one with twenty.
    """
    made: dict[Problem, None] = {}
    for field, message, kind in problems:
        if len(made) == MAX_PROBLEMS:
            return (*list(made)[:-1], Problem("", "there are more problems, not shown here", kind))
        made[Problem(field, clean(message), kind)] = None
    return tuple(made)


def unknown(path: Path, known: Sequence[str]) -> Problem:
    """
    Returns the problem that the last part of *path* is no name of *known*. It says which one was meant, or which there
    are.
    """
    near = suggestion(str(path[-1])[:_MAX_NAME], known[:_MAX_COMPARED]).removeprefix(", ")
    others = f"known: {quoted(known)}" if known else "nothing is expected here"
    return Problem(dotted(path), f"is unknown; {near or others}", "unknown")


def quoted(names: Iterable[object]) -> str:
    """
    Returns *names* in backticks; a message is cut where they are many.
    """
    return ", ".join(f"`{clean(str(name), _MAX_NAME)}`" for name in names)


def of_union(field: str, branches: Sequence[list[Problem]]) -> list[Problem]:
    """
    Returns the problems worth telling if *field* fits none of several alternatives.

    Those that *field* resembles (it is of their type) speak: of a place that has the wrong type for each of them one problem, which names all
    alternatives, else the nearest one alone.
    """
    alike = [way for way in branches if not any(p.field == field and p.kind == "type" for p in way)] or branches
    places = set.intersection(*({p.field for p in way if p.kind == "type"} for way in alike))
    if len(alike) == 1 or not places:
        return min(alike, key=_distance)
    at = min(places)
    wrong = [p.message.removeprefix("must be ").partition(", not ") for b in alike for p in b if p.field == at]
    return [Problem(at, f"must be {' or '.join(dict.fromkeys(w[0] for w in wrong))}{''.join(wrong[0][1:])}", "type")]


def _distance(way: Sequence[Problem]) -> tuple[int, ...]:
    # Text where an array or object belongs may be the JSON of one: that is the alternative that was meant.
    wrong = [kind for _, text, kind in way if not (text.endswith(", not a string") and text.startswith(_READ))]
    return wrong.count("type"), len(wrong), len(way)
