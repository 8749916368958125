"""
One list of settings for all who take it.
"""

import inspect

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from guardrails.session.session import Session


P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


def with_settings_of(
    takes: Callable[Concatenate[Session, P], object],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, Session, P], R]]:
    """
    A decorator for a function of a client, a session and `**settings`: its settings are those that *takes* has after its
    session, for a type checker and for `inspect.signature`.
    """

    def taking(function: Callable[..., R]) -> Callable[Concatenate[Any, Session, P], R]:
        client, session, *_ = inspect.signature(function).parameters.values()
        _, *settings = inspect.signature(takes).parameters.values()
        own = inspect.signature(function).replace(parameters=[client, session, *settings])
        function.__signature__ = own  # type: ignore[attr-defined]
        return function

    return taking
