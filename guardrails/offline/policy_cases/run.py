"""
Live through a case: the same `decide` and `complete` as every session, with a clock that only moves when told.
"""

import json
import re

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from guardrails.core.chain import Chain, Plan
from guardrails.core.decision import Decision
from guardrails.core.engine import Engine, exhausted_by
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.events import event, is_shared, lose
from guardrails.core.guards.amounts import internal
from guardrails.core.prepare import prepare, told
from guardrails.core.records.digest import Earlier, failure
from guardrails.core.result import reading_of
from guardrails.core.state import SessionState
from guardrails.core.tools.tool_call import tool_call
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Outcome, Success, micro_dollars
from guardrails.session.calls.results import Results

from .reading import Case
from .steps import (
    Approve,
    Call,
    Charge,
    End,
    Exhausted,
    Extend,
    Failed,
    Refuse,
    Repeat,
    Request,
    Settle,
    Step,
    Turn,
    Wait,
)
from .verdict import Difference, Failure, codes_of, decision_differs, envelope_differs, said_of


T = TypeVar("T")
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


def run_case(chain: Chain, case: Case, scopes: Mapping[str, Chain] | None = None) -> Result:
    """
    Decide *case* by *chain*, and by those of *scopes*, in which it is the only session. Pure: the same case and chains
    always give the same.
    """
    run = _Run(chain.with_tools(case.tools) if case.tools else chain, scopes or {}, Result(case=case))
    run.steps(case.steps)
    return run.result


class _Run:
    __slots__ = ("chain", "engine", "now", "pending", "repetition", "result", "results", "states")

    def __init__(self, chain: Chain, scopes: Mapping[str, Chain], result: Result) -> None:
        self.chain = chain
        self.engine = Engine(chain, "case", scopes=[(name, name, own) for name, own in scopes.items()])
        self.states = [SessionState() for _ in range(1 + len(scopes))]
        """The session's, and those of its scopes."""
        self.result = result
        self.now = START_MS
        self.repetition: int | None = None
        self.pending: dict[str, Decision] = {}
        self.results = Results()

    def happen(self, name: str, values: Mapping[str, Any]) -> None:
        """
        Let an event happen now.
        """
        states = self.states if is_shared(name, values) else self.states[:1]
        self.engine.apply(event(name, values, self.now), self.now, states)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                outer = self.repetition
                for self.repetition in range(1, step.repeat + 1):
                    self.steps(step.steps)
                self.repetition = outer
            else:
                self._step(step)

    def _step(self, step: Step) -> None:  # noqa: C901  a case for each kind of step
        self.result.steps += 1
        if step.at is not None:
            at = step.at.ms + (self.now if step.at.relative else START_MS)
            if at < self.now:
                before = f"a time of {(self.now - START_MS) / 1000:g} s or later, as of the step before"
                self._fail(step, "at", before, f"{step.at.ms / 1000:g} s")
            self.now = max(self.now, at)
        now = self.now
        match step:
            case Call():
                self._call(step)
            case Settle():
                self._settle(step)
            case Charge():
                said = step.charge
                if said.begins_turn:
                    self.happen("turn", {"calls": said.calls})
                cost = None if said.cost_usd is None else micro_dollars(said.cost_usd)
                self.happen("charge", {"cost": cost, "tokens": said.tokens or 0, "untold": said.tokens is None})
            case Turn():
                self.happen("turn", {"calls": step.turn})
            case Request():
                for _ in range(step.request):
                    self.happen("request", {})
            case Wait():
                self.now += _ms(step.wait)
            case Extend():
                try:
                    self.happen("extend", {"amounts": internal(step.extend)})
                except SessionError as error:
                    self._fail(step, "extend", "limits that can be raised", str(error))
            case Approve():
                self._answer(step, step.approve, {"approved": True, "reason": ""})
            case Refuse():
                self._answer(step, step.refuse, {"approved": False, "reason": step.reason})
            case Exhausted():
                cause = self.engine.look(partial(exhausted_by, self.chain), self.states, now)
                code = None if cause is None else cause[0]
                if code != step.exhausted:
                    wanted = step.exhausted or "nothing"
                    self._fail(step, "session", f"exhausted by {wanted}", f"by {code or 'nothing'}")

    def _answer(self, step: Step, call_id: str, answer: dict[str, Any]) -> None:
        asked = [one.seq for one in self.states[0].pending.values() if one.question is not None and one.id == call_id]
        try:
            self.happen("unpark", {"seq": asked[0] if asked else 0, **answer})
        except SessionError as error:
            self._fail(step, f"answer `{call_id}`", "a call that waits", str(error))

    def _call(self, step: Call) -> None:
        plan = self.chain.plan(step.call)
        call_id = f"call {self.result.steps}" if step.id is None else str(self._fill(step.id))
        call = tool_call(step.call, self._fill(step.arguments), call_id, plan.arguments, plan.tool.labels)
        # What stays open is asked for as a host does that runs it itself, or has it approved first.
        claim = not (step.pending or step.lost)
        decision = self.engine.decide(call, plan, self.now, claim, None, self.states)
        found = decision_differs(step, decision)
        read: dict[str, Any] | None = None
        if decision.envelope is not None:
            read = self._read(decision.envelope)
            earlier = self.results.find("", call.sig) if not decision.denials[0].running else None
            if earlier is not None and decision.envelope.status == "duplicate_call_blocked":
                read["previous_result"] = json.loads(earlier.payload)
        elif step.lost:
            # Given up by whatever comes next.
            self.engine.apply(partial(lose, seq=decision.seq, now_ms=self.now), self.now, self.states[:1])
        elif step.pending:
            self.pending[call_id] = decision
        else:
            read = self._complete(decision, step, plan)
        if read is not None and not found.expected:
            envelope_differs(step.status, self._fill(step.envelope), read, found)
        self._note(step, f"call `{step.call}`", found, decision)

    def _settle(self, step: Settle) -> None:
        call_id = str(self._fill(step.settle))
        decision = self.pending.pop(call_id, None)
        if decision is None:
            self._fail(step, f"settle `{call_id}`", "a pending call", "no call of that id is pending")
            return
        read = self._complete(decision, step, self.chain.plan(decision.call.tool))
        found = Difference()
        envelope_differs(step.status, self._fill(step.envelope), read, found)
        self._note(step, f"settle `{call_id}`", found, None)

    def _complete(self, decision: Decision, ran: End, plan: Plan) -> dict[str, Any]:
        """
        Let the call end, and give the fields that the model reads.
        """
        limit = plan.timeout_ms
        if limit is not None and _ms(ran.takes) >= limit:
            self.now += limit
            outcome: Outcome = reading_of(TimeoutError(f"no result within {limit / 1000:g} s"))
        else:
            self.now += _ms(ran.takes)
            outcome = self._outcome(ran, plan, decision.call.arguments)
        prepared = prepare(outcome, plan.max_bytes, decision.call, look=not plan.changes)
        prepared.unknown = limit is not None and _ms(ran.takes) >= limit
        envelope, completion = self.engine.complete(decision, prepared, plan, self.now, None, self.states)
        call = decision.call
        if call.sig is not None and call.canonical is not None and not completion.late:
            payload = failure(outcome) if prepared.rendered is None else prepared.rendered.payload
            self.results.keep("", call.sig, Earlier(call.tool, call.canonical, payload, outcome.error_type is None))
        return self._read(envelope)

    def _outcome(self, ran: End, plan: Plan, arguments: Any) -> Outcome:
        failed = Failed(type=ran.error) if isinstance(ran.error, str) else ran.error
        if failed is not None:
            return Outcome(
                None,
                failed.type,
                str(self._fill(failed.message)) or f"the call failed: {failed.type}",
                failed.http_status,
                None if failed.retry_after is None else _ms(failed.retry_after),
                cost=None if ran.cost_usd is None else micro_dollars(ran.cost_usd),
                tokens=ran.tokens,
            )
        value = self._fill(ran.result) if ran.result_bytes is None else "x" * (ran.result_bytes - len('""'))
        result = Success(value, ran.cost_usd, ran.tokens)
        return told(result, plan, arguments, self.now)

    def _read(self, envelope: Envelope) -> dict[str, Any]:
        """
        The fields of an envelope as JSON has them.
        """
        fields = envelope.to_dict()
        for key in ("result", "results"):
            if key in fields:
                fields[key] = json.loads(envelope.render().payload)
        return fields

    def _fill(self, value: Any) -> Any:
        return value if self.repetition is None else filled(value, self.repetition)

    def _note(self, step: Step, what: str, found: Difference, decision: Decision | None) -> None:
        if found.expected:
            self._fail(step, what, ", ".join(found.expected), ", ".join(found.decided), decision)

    def _fail(self, step: Step, what: str, expected: str, decided: str, decision: Decision | None = None) -> None:
        self.result.failed_steps += 1
        if len(self.result.failures) >= MAX_FAILURES:
            return
        codes: dict[str, Any] = {}
        if decision is not None:
            codes = {
                "said": said_of(decision),
                "denials": codes_of(decision.denials),
                "observed": codes_of(decision.observed),
                "nudges": tuple(code for code, _ in decision.nudges),
            }
        failure = Failure(
            line=step.line, step=what, expected=expected, decided=decided, repetition=self.repetition, **codes
        )
        self.result.failures.append(failure)


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
