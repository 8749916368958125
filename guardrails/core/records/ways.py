"""
The declarations that applied to a tool when it was called, as its record tells.
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.plan import Plan
from guardrails.core.tools.tool import Tool

from .recorded import Record


MAX_WAYS: Final = 1_024


class Way(NamedTuple):
    """
    The declarations that applied to a tool when it was called.
    """

    chain: Chain
    plan: Plan


class Ways:
    """
    The settings of a chain, with the declarations of tools from records: code declares tools, and may do so between two
    calls.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._made: dict[tuple[Any, ...], Way] = {}

    def of(self, record: Record) -> Way:
        """
        Returns the declarations that applied to the call of *record*.
        """
        key = tuple(map(record.get, _DECLARED))
        way = self._made.get(key)
        if way is None:
            if len(self._made) >= MAX_WAYS:
                self._made.clear()
            way = self._made[key] = self._way(record)
        return way

    def _way(self, record: Record) -> Way:
        chain = _knowing(self._chain, record["tool"], record["known"])
        if chain.plan(record["tool"]).tool.held != record.get("held", ""):
            chain = _holding(chain, record["tool"], record.get("held", ""))
        plan = chain.plan(record["tool"])
        told = "allow" if record["polling"] else "evidence" if record["stable"] else record.get("repeats")
        declared = {name: record[name] for name in ("idempotent", "read_only")}
        tool = replace(plan.tool, retryable=record["retryable_declared"], repeats=told, **declared)
        own = {
            "cost": record["estimate"],
            "tokens": record.get("estimate_tokens", 0),
            "timeout_ms": record["timeout_ms"],
        }
        return Way(chain, replace(plan, tool=tool, changes=record["mutates"], **own))


_DECLARED: Final = (
    *("tool", "known", "stable", "idempotent", "polling", "repeats", "read_only", "retryable_declared"),
    *("estimate", "estimate_tokens", "timeout_ms", "mutates", "held"),
)


def _holding(chain: Chain, tool: str, held: str) -> Chain:
    """
    Returns *chain* with *tool* held for the reason *held*, or not held if that is empty.
    """
    own = chain.tools.get(tool) or Tool(name=tool)
    return chain.with_tools([replace(own, held=held)]).knowing(chain.known)


def _knowing(chain: Chain, tool: str, known: bool | None) -> Chain:  # noqa: FBT001
    """
    Returns *chain* with *tool* known or not, as the session named its tools. None if the session named none.
    """
    if known and (chain.known is None or tool not in chain.known):
        return chain.with_tools([Tool(name=tool)])
    if known is False and chain.known is None:
        return chain.with_tools([Tool(name=f"not {tool}")])
    return chain
