"""
The declarations of a host about its tools.
"""

import threading

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from typing import Any

from guardrails.core.chain import Chain
from guardrails.core.tools.tool import Tool

from .awaited import AwaitedCalls


class Declaring(AwaitedCalls):
    """
    A session that hears of tools while it is used.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        parent: Declaring | None = kwargs.get("parent")
        self._given: dict[str, Tool] = self._chain.tools if parent is None else parent._given  # noqa: SLF001  the same class
        """What the policy, and whoever made the session, declare."""
        self._declared: dict[str, Tool] = {} if parent is None else parent._declared  # noqa: SLF001
        self._declaring = threading.Lock()

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
        with self._declaring:
            self._specs.update(specs)
            for name in new.keys() & self._declared.keys() - specs.keys() - self._wrapped.keys():
                # Another tool of the name, whose arguments nobody can check.
                self._specs.pop(name, None)
            # A new one, as this session may have been copied for a scope.
            self._declared = {**self._declared, **new}
            chain, names = self._chain, frozenset(new)
            known = None if chain.known is None else chain.known | names
            hinted = {name: _below(replace(tool, parameters=None), self._given.get(name)) for name, tool in new.items()}
            hinted = {name: tool for name, tool in hinted.items() if tool != chain.tools.get(name, Tool(name=name))}
            if hinted or known != chain.known:
                self._lay(partial(_knowing, tools=tuple(hinted.values()), names=names))

    def defines(self, tool: str) -> bool:
        """
        Returns whether the arguments of *tool* are checked already, by the policy or as it was declared.
        """
        return (tool in self._specs and tool not in self._wrapped) or self._chain.plan(tool).arguments is not None


def _knowing(chain: Chain, tools: Iterable[Tool], names: frozenset[str]) -> Chain:
    """
    *chain* with *tools*, and with *names* known as well.
    """
    return chain.with_tools(tools).knowing(None if chain.known is None else chain.known | names)


def _below(tool: Tool, own: Tool | None) -> Tool:
    """
    *tool* with what its *own* declaration says on top.
    """
    if own is None:
        return tool
    said = {field.name: value for field in fields(Tool) if (value := getattr(own, field.name)) != field.default}
    return replace(tool, **said)
