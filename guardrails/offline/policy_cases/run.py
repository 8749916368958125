"""
Live through a case: in a session like every other, by a clock that only moves when told.
"""

import json
import re

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Outcome, Success, micro_dollars
from guardrails.policy.policy import Policy
from guardrails.stores.memory import MemoryStore

from . import steps as kinds
from .reading import Case
from .steps import Call, End, Failed, Step
from .verdict import Difference, Failure, codes_of, decision_differs, envelope_differs, said_of


START_MS: Final = 1_800_000_000_000
"""When every case starts: 2027-01-15 08:00 UTC."""
MAX_FAILURES: Final = 20
"""Failed steps of one case that are kept."""

_REPETITION: Final = re.compile(r"\$(\$)?n(?!\w)")


@dataclass(slots=True, kw_only=True)
class Result:
    """
    The outcome of one case.
    """

    case: Case
    failures: list[Failure] = field(default_factory=list)
    """In order; the first is why, the others may follow from it. At most `MAX_FAILURES`."""
    failed_steps: int = 0
    """All of them."""
    steps: int = 0
    """Steps that were run, repetitions counted."""

    @property
    def passed(self) -> bool:
        """
        All went as expected.
        """
        return not self.failures

    def __str__(self) -> str:
        where = f"{self.case.file}:{self.case.line}: {self.case.name}"
        if self.passed:
            return f"{where}: passed"
        first = self.failures[0]
        told = f"{self.case.file}:{first.line}: {self.case.name}: {first}"
        return told if self.failed_steps == 1 else f"{told} (and {self.failed_steps - 1} more)"


def run_case(policy: Policy, case: Case) -> Result:
    """
    Returns how *policy* decides *case*, in which there is no other session: the same case and policy always give the same.
    """
    run = _Run(policy, case)
    run.steps(case.steps)
    run.session.ledger.forget()
    return run.result


class _Run:
    def __init__(self, policy: Policy, case: Case) -> None:
        self.result = Result(case=case)
        self.now_ms = START_MS
        self.repetition: int | None = None
        self.pending: dict[str, Decision] = {}
        self.session = policy.session(
            "case",
            tools=case.tools,
            store=MemoryStore(),
            clock=lambda: self.now_ms / 1000,
            scopes=dict.fromkeys(policy.scopes, "case"),
        )

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, kinds.Repeat):
                outer = self.repetition
                for self.repetition in range(1, step.repeat + 1):
                    self.steps(step.steps)
                self.repetition = outer
            else:
                self._step(step)

    def _step(self, step: Step) -> None:
        self.result.steps += 1
        if step.at is not None:
            at = step.at.ms + (self.now_ms if step.at.relative else START_MS)
            if at < self.now_ms:
                before = f"a time of {(self.now_ms - START_MS) / 1000:g} s or later, as of the step before"
                self._note(step, "at", [(before, f"{step.at.ms / 1000:g} s")])
            self.now_ms = max(self.now_ms, at)
        match step:
            case Call():
                self._call(step)
            case kinds.Settle():
                self._settle(step)
            case kinds.Wait():
                self.now_ms += _ms(step.wait)
            case kinds.Exhausted():
                code = self.session.exhausted
                if code != step.exhausted:
                    wanted = step.exhausted or "nothing"
                    self._note(step, "session", [(f"exhausted by {wanted}", f"by {code or 'nothing'}")])
            case _:
                self._tell(step)

    def _tell(self, step: Step) -> None:
        """
        Tell the session of what its host does.
        """
        session, what, wanted = self.session, "extend", "limits that can be raised"
        try:
            match step:
                case kinds.Turn():
                    session.begin_turn(step.turn)
                case kinds.Request():
                    for _ in range(step.request):
                        session.request()
                case kinds.Charge(charge=said):
                    if said.begins_turn:
                        session.begin_turn(said.calls)
                    cost = None if said.cost_usd is None else micro_dollars(said.cost_usd)
                    untold = said.tokens is None
                    session.ledger.event("charge", {"cost": cost, "tokens": said.tokens or 0, "untold": untold})
                case kinds.Extend():
                    session.extend(**step.extend)
                case kinds.Approve():
                    what, wanted = f"answer `{step.approve}`", "a call that waits"
                    session.approve(step.approve)
                case kinds.Refuse():
                    what, wanted = f"answer `{step.refuse}`", "a call that waits"
                    session.refuse(step.refuse, reason=step.reason)
        except SessionError as error:
            self._note(step, what, [(wanted, str(error))])

    def _call(self, step: Call) -> None:
        session, call_id = self.session, f"call {self.result.steps}" if step.id is None else str(self._fill(step.id))
        # What stays open is asked for as a host does that runs it itself, or has it approved first.
        claim = not (step.pending or step.lost)
        decision = session.decide(step.call, self._fill(step.arguments), id=call_id, claim=claim)
        found, envelope = decision_differs(step, decision), decision.envelope
        if envelope is None and step.lost:
            # Given up by whatever comes next.
            session.ledger.lose(*session.calls.opened(step.call, self._fill(step.arguments)))
        elif envelope is None and step.pending:
            self.pending[call_id] = decision
        else:
            envelope = envelope or self._end(decision, step)
            found = found or envelope_differs(step.status, self._fill(step.envelope), _read(envelope))
        self._note(step, f"call `{step.call}`", found, decision)

    def _settle(self, step: kinds.Settle) -> None:
        call_id = str(self._fill(step.settle))
        decision = self.pending.pop(call_id, None)
        found = [("a pending call", "no call of that id is pending")]
        if decision is not None:
            found = envelope_differs(step.status, self._fill(step.envelope), _read(self._end(decision, step)))
        self._note(step, f"settle `{call_id}`", found)

    def _end(self, decision: Decision, ran: End) -> Envelope:
        """
        Let the call end, and give what the model reads.
        """
        limit, takes = self.session.ledger.plan(decision.call.tool).timeout_ms, _ms(ran.takes)
        if limit is not None and takes >= limit:
            self.now_ms += limit
            return self.session.complete(decision, TimeoutError(f"no result within {limit / 1000:g} s"))
        self.now_ms += takes
        failed = Failed(type=ran.error) if isinstance(ran.error, str) else ran.error
        if failed is None:
            value = self._fill(ran.result) if ran.result_bytes is None else "x" * (ran.result_bytes - len('""'))
            return self.session.complete(decision, Success(value, ran.cost_usd, ran.tokens))
        message = str(self._fill(failed.message)) or f"the call failed: {failed.type}"
        outcome = Outcome(None, failed.type, message, failed.http_status, tokens=ran.tokens)
        outcome.retry_after_ms = None if failed.retry_after is None else _ms(failed.retry_after)
        outcome.cost = None if ran.cost_usd is None else micro_dollars(ran.cost_usd)
        return self.session.complete(decision, outcome)

    def _fill(self, value: Any) -> Any:
        return value if self.repetition is None else filled(value, self.repetition)

    def _note(self, step: Step, what: str, found: list[Difference], decision: Decision | None = None) -> None:
        self.result.failed_steps += bool(found)
        if not found or len(self.result.failures) >= MAX_FAILURES:
            return
        expected, decided = map(", ".join, zip(*found, strict=True))
        failure = Failure(line=step.line, step=what, expected=expected, decided=decided, repetition=self.repetition)
        if decision is not None:
            failure.said, failure.nudges = said_of(decision), tuple(code for code, _ in decision.nudges)
            failure.denials, failure.observed = codes_of(decision.denials), codes_of(decision.observed)
        self.result.failures.append(failure)


def _read(envelope: Envelope) -> dict[str, Any]:
    """
    The fields of an envelope as JSON has them.
    """
    fields = envelope.to_dict()
    for key in ("result", "results"):
        if key in fields:
            fields[key] = json.loads(envelope.render().payload)
    return fields


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def filled(value: Any, n: int) -> Any:
    """
    Returns *value* with the number of the repetition for `$n` in its texts. It is a number if `$n` is the whole text.
    `$$n` is the text `$n`.
    """
    if isinstance(value, str):
        if "$" not in value:
            return value
        return n if value == "$n" else _REPETITION.sub(lambda found: "$n" if found[1] else str(n), value)
    if isinstance(value, dict):
        return {filled(key, n) if key != "$n" else str(n): filled(each, n) for key, each in value.items()}
    return [filled(each, n) for each in value] if isinstance(value, list) else value
