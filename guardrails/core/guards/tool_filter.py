"""
Say which tools may be called at all, and refuse those that somebody has to look at first.
"""

from typing import Any, ClassVar, Literal

from guardrails.core.values.units import Glob, matcher

from .base import Codes, Denial, Facts, Guard, SessionState, Tool, ToolCall, Verdict, guard


@guard
class ToolFilter(Guard):
    """
    Deny tools by name: those that match a glob of *deny*, those that match none of *allow*, and unknown ones.

    A tool is unknown if the policy or session names tools and this is none of them.
    """

    codes: ClassVar[Codes] = {"tool_filter.deny": (), "tool_filter.unknown": ("tools",)}
    tool_settings: ClassVar[tuple[str, ...] | None] = ()

    allow: tuple[Glob, ...] = ()
    """Globs; empty allows every tool."""
    deny: tuple[Glob, ...] = ()
    """Globs; stands above *allow*."""
    show: Literal["allowed", "all"] = "allowed"
    """The tools that a proxy lists: those that may be called, or all."""
    unknown: Literal["deny", "allow"] = "deny"

    def hides(self, tool: str) -> bool:
        """
        Returns whether *tool*, which is there, is not to be listed.
        """
        return self.show == "allowed" and self._why(tool, None) is not None

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return self._why(tool, known) is not None

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        why, shown = self._why(call.tool, facts.known), call.tool[:64]
        if why is None:
            return None
        if why != "unknown":
            message, details = f"`{shown}` may not be used here.", {"error_type": "permission"}
            return Denial("tool_filter.deny", message, "Use another tool.", details=details)
        from difflib import get_close_matches

        known, message = sorted(facts.known or ()), f"There is no tool `{shown}`."
        near, names = get_close_matches(shown, known, n=1), ", ".join(f"`{name}`" for name in known[:20]) or "none"
        hint = f"Did you mean `{near[0]}`?" if near else f"The tools are: {names}."
        details = {"error_type": "tool_missing"}
        return Denial("tool_filter.unknown", message, hint, details=details, values={"tools": names})

    def _why(self, tool: str, known: frozenset[str] | None) -> str | None:
        if matcher(self.deny)(tool) is not None or (self.allow and matcher(self.allow)(tool) is None):
            return "deny"
        return "unknown" if self.unknown == "deny" and known is not None and tool not in known else None


@guard
class Held(Guard):
    """
    Deny every call of a tool that is declared as held, with the reason that its declaration gives.

    This guard is in every chain for a held tool. A policy file has no settings for it.
    """

    codes: ClassVar[Codes] = {"held.tool": ("tool", "reason")}

    @classmethod
    def implied(cls, tool: Tool) -> Guard | None:
        return cls() if tool.held else None

    def applies(self, tool: Tool) -> bool:
        return bool(tool.held)

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        reason, shown = facts.tool.held, call.tool[:64]
        why = f"`{shown}` is held: {reason}."
        details = {"error_type": "permission", "user_facing_hint": why}
        hint = "Tell the user, who has to look at it and allow it. Go on without this tool."
        message, values = f"{why} It was not called.", {"tool": shown, "reason": reason}
        return Denial("held.tool", message, hint, details=details, values=values)
