"""
A session as one function or one loop of a host calls it.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from guardrails.core.tools.tool import Tool

from .tools import offering


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments
    from guardrails.session.session import Session

S = TypeVar("S", bound="Session")


def scoped(
    session: S,
    specs: "Mapping[str, Arguments]",
    tools: Iterable[Tool] | None = None,
    *,
    passes: Iterable[type[BaseException]] = (),
) -> S:
    """
    Returns the very *session* as one function or one loop calls it. The *specs* check the arguments of tools whose
    parameters the policy does not declare. If *tools* are given, no others exist.

    Exceptions of the types *passes* are the control flow of a host: interrupts, deferrals, hand-offs. If a tool
    raises one, `call`, `acall` and `wrap` raise it on. The call stays admitted and keeps its amounts. It is taken
    up if the same call is made again: charged once, within a day, by any process. Cancellation and Ctrl-C are never
    control flow of a host. Raises TypeError if an item is no type of exceptions.
    """
    for kind in (passing := tuple(passes)):
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(f"`passes` has types of exceptions, not `{kind!r:.60}`")
    # Else each copy would go over to a changed policy by itself, and say so.
    session.ledger.fresh()
    scope = copy(session)
    scope.ledger = copy(session.ledger)
    scope.calls = session.calls.of(scope.ledger, specs, passing)
    if tools is not None:
        scope.ledger.lay(partial(offering, offered={tool.name: tool for tool in tools}))
    return scope
