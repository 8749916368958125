"""
A guard of one's own: an agent may write to so many people and no more.

`test_own_guard.py` beside it is its test. A policy file sets it by its name: `recipients: {limit: 3}`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Ge

from guardrails import Denial, Guard, Policy, Tool, guard
from guardrails.core.guards.base import Facts, SessionState, ToolCall


@guard
class Recipients(Guard):
    """
    Refuse a call that would write to more than *limit* people.
    """

    codes: ClassVar[dict[str, tuple[str, ...]]] = {"recipients.limit": ("limit", "used")}

    limit: Annotated[int, Ge(1)] = 3

    def applies(self, tool: Tool) -> bool:
        return not tool.read_only

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Denial | None:
        used = mine or 0
        if used + people(call) <= self.limit:
            return None
        return Denial(
            code="recipients.limit",
            message=f"This would be more than {self.limit} people ({used} were written to).",
            hint="Write to fewer, or ask the user.",
            values={"limit": self.limit, "used": used},
        )

    def admit(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> int:
        return (mine or 0) + people(call)


def people(call: ToolCall) -> int:
    named = call.arguments.get("to") if isinstance(call.arguments, Mapping) else None
    return len(named) if isinstance(named, list) else int(named is not None)


def main() -> None:
    with Policy([Recipients(limit=3)]).session("monday") as session:
        for to in (["ann", "bob"], ["cem", "dan"], ["eve"]):
            envelope = session.call("send_mail", {"to": to}, lambda tool, arguments: "sent")
            print(*to, envelope.code or envelope.status, envelope.message or "")


if __name__ == "__main__":
    main()
