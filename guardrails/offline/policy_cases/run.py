"""
Live through a case: the same `decide` and `complete` as every session, with a clock that only moves when told.
"""

import json
import re

from collections.abc import Mapping
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

from .case import Answer, Call, Case, Charge, Exhausted, Extend, Ran, Repeat, Request, Settle, Step, Turn, Wait
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

    def steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                outer = self.repetition
                for self.repetition in range(1, step.times + 1):
                    self.steps(step.steps)
                self.repetition = outer
            else:
                self._step(step)

    def _step(self, step: Step) -> None:  # noqa: C901  a case for each kind of step
        self.result.steps += 1
        if step.at_ms is not None:
            at = step.at_ms + (self.now if step.relative else START_MS)
            if at < self.now:
                before = f"a time of {(self.now - START_MS) / 1000:g} s or later, as of the step before"
                self._fail(step, "at", before, f"{step.at_ms / 1000:g} s")
            self.now = max(self.now, at)
        now = self.now
        match step:
            case Call():
                self._call(step)
            case Settle():
                self._settle(step)
            case Charge():
                if step.begins_turn:
                    self.happen("turn", {"calls": step.calls})
                cost = None if step.cost_usd is None else micro_dollars(step.cost_usd)
                self.happen("charge", {"cost": cost, "tokens": step.tokens or 0, "untold": step.tokens is None})
            case Turn():
                self.happen("turn", {"calls": step.calls})
            case Request():
                for _ in range(step.times):
                    self.happen("request", {})
            case Wait():
                self.now += step.ms
            case Extend():
                try:
                    self.happen("extend", {"amounts": internal(step.amounts)})
                except SessionError as error:
                    self._fail(step, "extend", "limits that can be raised", str(error))
            case Answer():
                asked = [
                    one for one in self.states[0].pending.values() if one.question is not None and one.id == step.id
                ]
                try:
                    answer = {"approved": step.approved, "reason": step.reason}
                    self.happen("unpark", {"seq": asked[0].seq if asked else 0, **answer})
                except SessionError as error:
                    self._fail(step, f"answer `{step.id}`", "a call that waits", str(error))
            case Exhausted():
                cause = self.engine.look(partial(exhausted_by, self.chain), self.states, now)
                code = None if cause is None else cause[0]
                if code != step.code:
                    self._fail(step, "session", f"exhausted by {step.code or 'nothing'}", f"by {code or 'nothing'}")

    def _call(self, step: Call) -> None:
        plan = self.chain.plan(step.tool)
        call_id = f"call {self.result.steps}" if step.id is None else str(self._fill(step.id))
        call = tool_call(step.tool, self._fill(step.arguments), call_id, plan.arguments, plan.tool.labels)
        # What stays open is asked for as a host does that runs it itself, or has it approved first.
        claim = step.ran is not None
        decision = self.engine.decide(call, plan, self.now, claim, None, self.states)
        found = decision_differs(step.expected, decision)
        read: dict[str, Any] | None = None
        if decision.envelope is not None:
            read = self._read(decision.envelope)
            earlier = self.results.find("", call.sig) if not decision.denials[0].running else None
            if earlier is not None and decision.envelope.status == "duplicate_call_blocked":
                read["previous_result"] = json.loads(earlier.payload)
        elif step.lost:
            # Given up by whatever comes next.
            self.engine.apply(partial(lose, seq=decision.seq, now_ms=self.now), self.now, self.states[:1])
        elif step.ran is None:
            self.pending[call_id] = decision
        else:
            read = self._complete(decision, step.ran, plan)
        if read is not None and not found.expected:
            envelope_differs(step.expected.status, self._fill(step.expected.envelope), read, found)
        self._note(step, f"call `{step.tool}`", found, decision)

    def _settle(self, step: Settle) -> None:
        call_id = str(self._fill(step.id))
        decision = self.pending.pop(call_id, None)
        if decision is None:
            self._fail(step, f"settle `{call_id}`", "a pending call", "no call of that id is pending")
            return
        read = self._complete(decision, step.ran, self.chain.plan(decision.call.tool))
        found = Difference()
        envelope_differs(step.expected.status, self._fill(step.expected.envelope), read, found)
        self._note(step, f"settle `{call_id}`", found, None)

    def _complete(self, decision: Decision, ran: Ran, plan: Plan) -> dict[str, Any]:
        """
        Let the call end, and give the fields that the model reads.
        """
        limit = plan.timeout_ms
        if limit is not None and ran.takes_ms >= limit:
            self.now += limit
            outcome: Outcome = reading_of(TimeoutError(f"no result within {limit / 1000:g} s"))
        else:
            self.now += ran.takes_ms
            outcome = self._outcome(ran, plan, decision.call.arguments)
        prepared = prepare(outcome, plan.max_bytes, decision.call, look=not plan.changes)
        prepared.unknown = limit is not None and ran.takes_ms >= limit
        envelope, completion = self.engine.complete(decision, prepared, plan, self.now, None, self.states)
        call = decision.call
        if call.sig is not None and call.canonical is not None and not completion.late:
            payload = failure(outcome) if prepared.rendered is None else prepared.rendered.payload
            self.results.keep("", call.sig, Earlier(call.tool, call.canonical, payload, outcome.error_type is None))
        return self._read(envelope)

    def _outcome(self, ran: Ran, plan: Plan, arguments: Any) -> Outcome:
        failed = ran.failed
        if failed is not None:
            return Outcome(
                None,
                failed.type,
                str(self._fill(failed.message)) or f"the call failed: {failed.type}",
                failed.http_status,
                failed.retry_after_ms,
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
