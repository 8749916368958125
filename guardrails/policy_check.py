"""
What is written in code, held to the same rules as a policy file.
"""

import dataclasses

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .guards.base import Guard
from .tool import Tool
from .usage import Price


if TYPE_CHECKING:
    from pydantic import TypeAdapter


def checked_guards(guards: Iterable[Guard], mistakes: list[str]) -> list[Guard]:
    """
    The guards that are valid; what is wrong with the others goes into *mistakes*.
    """
    valid: list[Guard] = []
    for guard in guards:
        if not isinstance(guard, Guard):
            shown = getattr(guard, "__name__", None) or type(guard).__name__
            hint = "; call it: it is a class" if isinstance(guard, type) else ""
            mistakes.append(f"`{shown}` is no guard{hint}")
        elif any(guard.name == other.name for other in valid):
            mistakes.append(f"`{guard.name}` is given twice")
        else:
            valid += _checked(guard, guard.name, mistakes)
    return valid


def checked_tools(tools: Iterable[Tool | Callable[..., Any]], mistakes: list[str]) -> list[Tool]:
    """
    The tools that are valid; what is wrong with the others goes into *mistakes*.
    """
    valid: list[Tool] = []
    for given in tools:
        if not isinstance(given, Tool) and not (callable(given) and hasattr(given, "__name__")):
            mistakes.append(f"`{given!r:.80}` is no tool: a tool is a `Tool` or a function")
            continue
        tool = given if isinstance(given, Tool) else Tool.of(given)
        if any(tool.name == other.name for other in valid):
            mistakes.append(f"the tool `{tool.name}` is given twice")
        else:
            valid += _checked(tool, f"tools.{tool.name}", mistakes)
    return valid


def checked_prices(prices: Mapping[str, Price | Mapping[str, float]], mistakes: list[str]) -> dict[str, Price]:
    """
    The prices that are valid; what is wrong with the others goes into *mistakes*.
    """
    valid: dict[str, Price] = {}
    for model, given in prices.items():
        try:
            price = given if isinstance(given, Price) else Price(**given)
        except TypeError as error:
            mistakes.append(f"prices.{model}: {str(error).removeprefix('Price.__init__() ')}")
            continue
        for checked in _checked(price, f"prices.{model}", mistakes):
            valid[model] = checked
    return valid


def wrong_words(messages: Mapping[str, Mapping[str, str]]) -> list[str]:
    """
    What is wrong with a policy's own wording.
    """
    return [
        f"messages.{code}: `{key}` is no text of a denial: use message and hint, each a string"
        for code, words in messages.items()
        for key, text in words.items()
        if key not in ("message", "hint") or not isinstance(text, str)
    ]


def _checked(given: Any, where: str, mistakes: list[str]) -> list[Any]:
    from pydantic import ValidationError

    lists: dict[str, Any] = {
        f.name: tuple(value) for f in dataclasses.fields(given) if isinstance(value := getattr(given, f.name), list)
    }
    kind: Any = type(given)
    try:
        return [adapter(kind).validate_python(dataclasses.replace(given, **lists))]
    except ValidationError as error:
        for found in error.errors(include_url=False):
            place = ".".join(str(part) for part in (where, *found["loc"]))
            mistakes.append(f"{place}: {found['msg'].lower()}, got `{found['input']!r:.80}`")
        return []


@lru_cache(maxsize=256)
def adapter(cls: Any) -> "TypeAdapter[Any]":
    """
    pydantic's check of the settings that *cls* is.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(cls)
