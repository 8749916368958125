"""
The declarations of a host about its tools.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from guardrails.core.chain import Chain
from guardrails.core.tools.tool import Tool
from guardrails.session.ledger import Ledger


if TYPE_CHECKING:
    from guardrails.core.arguments import Arguments


class Tools:
    """
    The tools of a session as its host declares them, while it is used too.
    """

    __slots__ = ("_declared", "_given", "ledger", "specs", "wrapped")

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.specs: dict[str, Arguments] = {}
        """The checks of arguments, where the policy declares none."""
        self.wrapped: dict[str, object] = {}
        """The functions that have a name."""
        self._given = ledger.chain.tools
        """The declarations of the policy, and of whoever made the session."""
        self._declared: dict[str, Tool] = {}

    def of(self, ledger: Ledger, specs: "Mapping[str, Arguments] | None" = None) -> "Tools":
        """
        Returns the same of another *ledger*: a child's, or with *specs*, its own for one loop.
        """
        own = Tools(ledger)
        own.specs = {**self.specs, **(specs or {})}
        own.wrapped = dict(self.wrapped) if specs is None else self.wrapped
        own._given, own._declared = self._given, self._declared
        return own

    def declare(self, *tools: Tool | Callable[..., Any]) -> None:
        """
        Know *tools*, those of a host or its functions, from now on: their arguments are checked, their hints count.

        The policy's declarations stand above those of a tool, field by field. A declared tool makes no other tool
        unknown. To say the same again costs next to nothing. Raises PolicyError if a tool is not valid.
        """
        named = [tool if isinstance(tool, Tool) else Tool.of(tool) for tool in tools]
        new = {tool.name: tool for tool in named if self._declared.get(tool.name) != tool}
        specs = {name: spec for name, tool in new.items() if (spec := tool.arguments()) is not None}
        if not new:
            return
        with self.ledger.lock:
            self.specs.update(specs)
            for name in new.keys() & self._declared.keys() - specs.keys() - self.wrapped.keys():
                # Another tool of the name, whose arguments nobody can check.
                self.specs.pop(name, None)
            # A new one, as a copy for one loop may have this one.
            self._declared = {**self._declared, **new}
            chain, names = self.ledger.chain, frozenset(new)
            known = None if chain.known is None else chain.known | names
            hinted = {name: _below(replace(tool, parameters=None), self._given.get(name)) for name, tool in new.items()}
            hinted = {name: tool for name, tool in hinted.items() if tool != chain.tools.get(name, Tool(name=name))}
            if hinted or known != chain.known:
                self.ledger.lay(partial(_knowing, tools=tuple(hinted.values()), names=names))

    def defines(self, tool: str) -> bool:
        """
        Returns whether the arguments of *tool* are checked already, by the policy or as it was declared.
        """
        return (tool in self.specs and tool not in self.wrapped) or self.ledger.plan(tool).arguments is not None


def _knowing(chain: Chain, tools: Iterable[Tool], names: frozenset[str]) -> Chain:
    """
    *chain* with *tools*, and with *names* known as well.
    """
    return chain.with_tools(tools).knowing(None if chain.known is None else chain.known | names)


def offering(chain: Chain, offered: Mapping[str, Tool]) -> Chain:
    """
    Returns *chain* with those *offered* as all tools there are.
    """
    more = [tool for name, tool in offered.items() if name not in chain.tools]
    return chain.with_tools(more).knowing(frozenset(offered))


def _below(tool: Tool, own: Tool | None) -> Tool:
    """
    *tool* with what its *own* declaration says on top.
    """
    if own is None:
        return tool
    declared = {field.name: value for field in fields(Tool) if (value := getattr(own, field.name)) != field.default}
    return replace(tool, **declared)
