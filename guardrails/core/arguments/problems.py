"""
Problems with the arguments of a call, in words that a model can act on, and the next step.
"""

import json
import re

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import NextAction, Problem


MAX_PROBLEMS: Final = 20
"""Problems of one call that are told; beyond, the last one says that there are more."""
MAX_MESSAGE: Final = 200
"""Characters of one message."""
NOT_A_FLAG: Final = "must be a number, not a boolean"
_MAX_NAME: Final = 64
_MAX_NAMED: Final = 10
_MAX_COMPARED: Final = 50
_MAX_TEXT: Final = 1_000_000

Kind = Literal["json", "missing", "unknown", "type", "value"]
Path = tuple[str | int, ...]

_TYPE_NAMES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "an array",
    tuple: "an array",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    type(None): "null",
}
_SUGGESTION = pattern(r"did you mean `([^`]+)`")


def as_object(arguments: object) -> tuple[object, tuple[Problem, ...]]:
    """
    Returns *arguments* as a dict, or as they came with the problem; None, as models send for tools without parameters,
    is {}.
    """
    if arguments is None:
        return {}, ()

    # What raises while it is looked at is one more thing that is no object.
    with suppress(Exception):
        if isinstance(arguments, Mapping):
            return dict(arguments), ()

        if isinstance(arguments, (str, bytes, bytearray)):
            return arguments, (Problem("", _unreadable(arguments), "json"),)

    return arguments, (Problem("", f"the arguments must be an object, not {type_name(arguments)}", "type"),)


def type_name(value: object) -> str:
    """
    Returns the JSON type of *value* with its article, or the name of its Python class.
    """
    kind = type(value)

    # Past what a metaclass may do to the name.
    return _TYPE_NAMES.get(kind) or f"`{clean(type.__dict__['__name__'].__get__(kind), _MAX_NAME)}`"


def dotted(path: Path) -> str:
    """
    Returns *path* as the field of a problem, "" for the arguments as a whole.
    """
    if len(path) == 1:
        return clean(str(path[0]), _MAX_NAME)

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
    told: dict[Problem, None] = {}

    for field, message, kind in problems:
        if len(told) == MAX_PROBLEMS:
            return (*list(told)[:-1], Problem("", "there are more problems, not shown here", kind))

        told[Problem(field, clean(message), kind)] = None

    return tuple(told)


def missing(path: Path) -> Problem:
    return Problem(dotted(path), "is required", "missing")


def unknown(path: Path, known: Sequence[str]) -> Problem:
    """
    Returns the problem that the last part of *path* is no name of *known*. It says which one was meant, or which there
    are.
    """
    import difflib

    close = difflib.get_close_matches(str(path[-1])[:_MAX_NAME], known[:_MAX_COMPARED], n=1)

    if close:
        message = f"is unknown; did you mean `{close[0]}`?"
    elif known:
        message = f"is unknown; known: {quoted(known)}"
    else:
        message = "is unknown; nothing is expected here"

    return Problem(dotted(path), message, "unknown")


def quoted(names: Iterable[object]) -> str:
    """
    Returns *names* in backticks, at most ten.
    """
    shown = [f"`{clean(str(name), _MAX_NAME)}`" for name in names]
    rest = len(shown) - _MAX_NAMED

    return ", ".join(shown[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def of_union(field: str, branches: Sequence[list[Problem]]) -> list[Problem]:
    """
    Returns the problems worth telling if *field* fits none of several alternatives.

    An alternative that *field* resembles (it is of its type) speaks alone; else one problem names all alternatives.
    """
    if len(branches) == 1:
        return branches[0]

    alike = [branch for branch in branches if not any(p.field == field and p.kind == "type" for p in branch)]

    if alike:
        return min(alike, key=lambda branch: (sum(p.kind == "type" for p in branch), len(branch)))

    messages = [
        p.message.removeprefix("must be ").partition(", not ")
        for branch in branches
        for p in branch
        if p.field == field
    ]
    wanted = " or ".join(dict.fromkeys(message[0] for message in messages))

    return [Problem(field, f"must be {wanted}{messages[0][1]}{messages[0][2]}", "type")]


def advice(problems: Sequence[Problem], ask_user: frozenset[str] = frozenset()) -> tuple[NextAction, str]:
    """
    Returns whether the model should ask the user or correct itself, and the `user_facing_hint` that says so.

    Missing values are taken from the conversation, else the user is asked, unless another argument is a misspelling of the missing one. The user is also
    asked for refused values of the fields in *ask_user*, which only the user can know. These are names or dotted paths,
    with list positions left out. The rest (JSON, names, types, formats, choices) follows from the schema alone and is
    `fix_arguments`.
    """
    misspelt = {_meant(p) for p in problems if p.kind == "unknown"}
    absent = [p.field for p in problems if p.kind == "missing" and p.field not in misspelt]
    doubtful = [_subject(p, ask_user) for p in problems if p.kind == "value" and _subject(p, ask_user)]
    settled = {*absent, *doubtful}
    wrong = [p.field for p in problems if p.field not in settled and not (p.kind == "value" and _subject(p, ask_user))]
    ask = [f"Confirm {_listed(doubtful)} with the user before retrying."] if doubtful else []

    if absent:
        ask.append(f"Take {_listed(absent)} from the conversation; if it is not there, ask the user. Do not guess.")

    if ask:
        return "ask_user", " ".join([*ask, *([f"Also correct {_listed(wrong)}."] if wrong else [])])

    if any(p.kind == "json" for p in problems):
        return "fix_arguments", "Send the arguments as one valid JSON object; the user need not be asked."

    return "fix_arguments", f"Correct {_listed(wrong)} and call again; the user need not be asked."


def only_user(problems: Sequence[Problem], ask_user: frozenset[str]) -> bool:
    """
    Returns whether one of *problems* is of a field in *ask_user*.
    """
    return any(_subject(problem, ask_user) for problem in problems)


def _meant(problem: Problem) -> str:
    """
    Returns the field that the unknown one of *problem* was meant to be, or "".
    """
    match = _SUGGESTION.search(problem.message)
    parent, dot, _ = problem.field.rpartition(".")

    return f"{parent}{dot}{match[1]}" if match else ""


def _subject(problem: Problem, ask_user: frozenset[str]) -> str:
    """
    Returns the field of *problem* that only the user can know, or "".
    """
    if not problem.field:
        return next((name for name in re.findall(r"\w+(?:\.\w+)*", problem.message) if name in ask_user), "")

    names = [part for part in problem.field.split(".") if not part.isdigit()]
    found = problem.field in ask_user or ".".join(names) in ask_user or not ask_user.isdisjoint(names)

    return problem.field if found else ""


def _listed(fields: Iterable[str]) -> str:
    names = [f"`{field}`" if field else "the arguments" for field in dict.fromkeys(fields)]

    if len(names) > _MAX_NAMED:
        return "the arguments"

    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _unreadable(text: str | bytes | bytearray) -> str:
    if len(text) > _MAX_TEXT:
        return "the arguments are not a JSON object"

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"the arguments are not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} at line {error.lineno} column {error.colno}"
    except (ValueError, RecursionError):
        return "the arguments are not valid JSON"

    return "the arguments must be a JSON object, not text"
