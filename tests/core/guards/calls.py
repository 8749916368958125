"""
Sessions and executors that the tests of guards share.
"""

from typing import Any

from guardrails import Envelope, Policy


class Busy(Exception):
    """
    A refusal for its rate, which may say *after* how many seconds to come again.
    """

    status_code = 429

    def __init__(self, after: int | None = None) -> None:
        super().__init__("too many requests")
        self.headers = {} if after is None else {"retry-after": str(after)}


def ok(*_: Any) -> str:
    return "ok"


def gives(value: Any) -> Any:
    """
    An executor that ends each call with *value*: an exception is raised, all else returned.
    """

    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return execute


def make(clock: Any, *guards: Any, **settings: Any) -> Any:
    """
    A session of a policy of *guards*.
    """
    return Policy(guards, **settings).session("s", clock=clock)


def admitted(session: Any, tries: int, execute: Any = ok, tool: str = "t") -> int:
    """
    How many of so many fresh calls worked.
    """
    return sum(bool(session.call(tool, {"n": number}, execute).ok) for number in range(tries))


def said(envelope: Envelope, *names: str) -> tuple[Any, ...]:
    """
    The fields *names* of what the model reads.
    """
    return tuple(getattr(envelope, name) for name in names)
