"""
Calls for who runs them elsewhere: an adapter of a host decides, runs its own way, and says what came of it.
"""

from typing import Any

from guardrails.core.engine.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool_call import asked
from guardrails.core.values.errors import SessionError

from .calls import Calls


class Adapted(Calls):
    """
    The calls of a session as an adapter tells them.
    """

    def decide(self, tool: str, arguments: Any, *, id: str | None = None) -> Decision:
        """
        Ask whether a call may run, and reserve for it; `decision.envelope` is the refusal where it may not.

        Idempotent on (*id*, signature) until the call is completed; arguments that cannot be signed (an object that
        JSON has no form for) make a new call each time, so approve those by `complete` and not by a second `call`.
        """
        return self._decide(tool, arguments, id, asked)[0]

    def complete(self, decision: Decision, outcome: object) -> Envelope:
        """
        Settle a decided call; *outcome* is a value, an exception, `Success(value, cost_usd=...)` or `Failed(message)`.

        A second completion, or one after the admission expired, changes nothing and is only recorded. Raises
        SessionError where *decision* is another session's.
        """
        if decision.session != self.id:
            raise SessionError(f"the decision is of the session `{decision.session}`, not of `{self.id}`")
        if decision.envelope is not None:
            return decision.envelope
        return self._settle(decision, self._chain.plan(decision.call.tool), outcome)
