"""
Live through a case: in a session like every other, by a clock that only moves when told.
"""

import json
import re

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.envelope import Envelope
from guardrails.core.refusals import ALIASES
from guardrails.core.values.errors import SessionError
from guardrails.core.values.types import Denial, Nudge, Outcome, Success, micro_dollars
from guardrails.offline.figures import plural
from guardrails.offline.policy_cases import steps as kinds
from guardrails.offline.policy_cases.steps import Call, Case, End, Part, Step
from guardrails.policy.policy import Policy
from guardrails.stores.memory import MemoryStore


Difference = tuple[str, str]
"""The expected, and the decided."""
START_MS: Final = 1_800_000_000_000
"""When every case starts: 2027-01-15 08:00 UTC."""
MAX_FAILURES: Final = 20
"""Failed steps of one case that are kept."""
_SHOWN: Final = 160
"""Characters of a value in a failure."""


@dataclass(slots=True)
class Failure:
    """
    One step that did not go as expected.
    """

    line: int
    step: str
    """What the step does: ``call `search` ``."""
    expected: str
    decided: str
    repetition: int | None = None
    """Of the innermost `repeat` around it, from 1."""

    def __str__(self) -> str:
        times = "" if self.repetition is None else f" (repetition {self.repetition})"
        return f"{self.step}{times}: expected {self.expected}; decided {self.decided}"


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

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the case and the steps of it that failed, for another program.
        """
        counts = {"steps": self.steps, "failed_steps": self.failed_steps, "failures": [*map(asdict, self.failures)]}
        return {"name": self.case.name, "line": self.case.line, "passed": self.passed, **counts}

    def __str__(self) -> str:
        """
        The first failure. Raises IndexError if the case has passed.
        """
        first = self.failures[0]
        text = f"{self.case.file}:{first.line}: {self.case.name}: {first}"
        return text if self.failed_steps == 1 else f"{text} (and {self.failed_steps - 1} more)"


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
        scopes = dict.fromkeys(policy.scopes, "case")
        self.session = policy.session(
            "case", tools=case.tools, store=MemoryStore(), clock=lambda: self.now_ms / 1000, scopes=scopes
        )

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, kinds.Repeat):
                outer = self.repetition
                for self.repetition in range(1, step.repeat + 1):
                    self.steps(step.steps)
                self.repetition = outer
            else:
                self._step(step if self.repetition is None else filled(step, self.repetition))

    def _step(self, step: Step) -> None:
        self.result.steps += 1
        self.now_ms += step.at
        session = self.session
        try:
            match step:
                case Call():
                    self._call(step)
                case kinds.Settle():
                    self._settle(step)
                case kinds.Wait():
                    self.now_ms += step.wait
                case kinds.Exhausted():
                    code = session.exhausted or "nothing"
                    if code != (wanted := now(step.exhausted) or "nothing"):
                        self._note(step, "session", [(f"exhausted by {wanted}", f"by {code}")])
                case kinds.Turn():
                    session.begin_turn(step.turn)
                case kinds.Request():
                    for _ in range(step.request):
                        session.request()
                case kinds.Charge(charge=response):
                    if response.begins_turn:
                        session.begin_turn(response.calls)
                    cost = None if response.cost_usd is None else micro_dollars(response.cost_usd)
                    values = {"cost": cost, "tokens": response.tokens or 0, "untold": response.tokens is None}
                    session.ledger.event("charge", values)
                case kinds.Extend():
                    session.extend(**step.extend.model_dump(exclude_unset=True))
                case kinds.Approve():
                    session.approve(step.approve)
                case kinds.Refuse():
                    session.refuse(step.refuse, reason=step.reason)
        except SessionError as error:
            self._note(step, type(step).__name__.lower(), [("to be possible", str(error))])

    def _call(self, step: Call) -> None:
        session, call_id = self.session, f"call {self.result.steps}" if step.id is None else str(step.id)
        # What stays open is asked for as a host does that runs it itself, or has it approved first.
        claim = not (step.pending or step.lost)
        decision = session.decide(step.call, step.arguments, id=call_id, claim=claim)
        differences, envelope = decision_differs(step, decision), decision.envelope
        if envelope is None and step.lost:
            # Given up by whatever comes next.
            session.ledger.lose(*session.calls.open_calls(step.call, step.arguments))
        elif envelope is None and step.pending:
            self.pending[call_id] = decision
        else:
            envelope = envelope or self._end(decision, step)
            differences = differences or envelope_differs(step, envelope)
        self._note(step, f"call `{step.call}`", differences)

    def _settle(self, step: kinds.Settle) -> None:
        call_id = str(step.settle)
        differences = [("a pending call", "no call of that id is pending")]
        if decision := self.pending.pop(call_id, None):
            differences = envelope_differs(step, self._end(decision, step))
        self._note(step, f"settle `{call_id}`", differences)

    def _end(self, decision: Decision, ran: End) -> Envelope:
        """
        Let the call end, and give what the model reads.
        """
        limit = self.session.ledger.plan(decision.call.tool).timeout_ms
        if limit is not None and ran.takes >= limit:
            self.now_ms += limit
            return self.session.complete(decision, TimeoutError(f"no result within {limit / 1000:g} s"))
        self.now_ms += ran.takes
        if (failed := ran.error) is None:
            value = ran.result if ran.result_bytes is None else "x" * (ran.result_bytes - len('""'))
            return self.session.complete(decision, Success(value, ran.cost_usd, ran.tokens))
        message = str(failed.message) or f"the call failed: {failed.type}"
        cost = None if ran.cost_usd is None else micro_dollars(ran.cost_usd)
        failure = Outcome(None, failed.type, message, failed.http_status, failed.retry_after, cost, ran.tokens)
        return self.session.complete(decision, failure)

    def _note(self, step: Step, what: str, differences: list[Difference]) -> None:
        self.result.failed_steps += bool(differences)
        if not differences or len(self.result.failures) >= MAX_FAILURES:
            return
        expected, decided = map(", ".join, zip(*differences, strict=True))
        self.result.failures.append(Failure(step.line, what, expected, decided, self.repetition))


def filled(value: Any, n: int) -> Any:
    """
    Returns *value* with the number of the repetition for `$n` in its texts. It is a number if `$n` is the whole text.
    `$$n` is the text `$n`.
    """
    if isinstance(value, str):
        if "$" not in value:
            return value
        return n if value == "$n" else re.sub(r"\$(\$)?n(?!\w)", lambda match: "$n" if match[1] else str(n), value)
    if isinstance(value, dict):
        return {filled(key, n) if key != "$n" else str(n): filled(each, n) for key, each in value.items()}
    if isinstance(value, Part):
        return value.model_copy(update={name: filled(each, n) for name, each in value})
    return [filled(each, n) for each in value] if isinstance(value, list) else value


def decision_differs(step: Call, decision: Decision) -> list[Difference]:
    """
    Returns how *decision* differs from the one that *step* expects. The decided side is the whole decision: every denial, nudge,
    observed denial and failed guard.
    """
    nudges, codes = [code for code, _ in decision.nudges], _codes(decision.denials)
    verdict = "pending" if decision.pending else "deny" if codes else "nudge" if nudges else "allow"
    wanted = []
    if verdict != step.expect or now(step.code) not in (None, *([decision.code] if decision.denials else nudges)):
        wanted.append(" ".join(filter(None, (step.expect, step.code))))
    if {denial.code for denial in decision.observed} != {*map(now, step.observed)}:
        wanted.append(f"observed {' + '.join(sorted(set(step.observed))) or 'nothing'}")
    decided = [" ".join(filter(None, (verdict, " + ".join(codes or nudges))))]
    if decision.observed:
        decided.append(f"observed {' + '.join(_codes(decision.observed))}")
    decided += [f"guard `{name}` failed ({error})" for name, error in decision.errors]
    return [(", ".join(wanted), ", ".join(decided))] if wanted else []


def now(code: str | None) -> str | None:
    """
    Returns the present name of a *code* of 0.2.0.
    """
    return ALIASES.get(code or "", code)


def _codes(verdicts: Iterable[Denial | Nudge]) -> list[str]:
    return list(dict.fromkeys(each.code for each in verdicts))


def envelope_differs(step: End, envelope: Envelope) -> list[Difference]:
    """
    Returns how the fields of an envelope, as JSON has them, differ from those that *step* expects.
    """
    read = envelope.to_dict()
    for key in {"result", "results"} & read.keys():
        read[key] = json.loads(envelope.render().payload)
    wrong = [] if step.status in (None, read["status"]) else [(f"status {step.status}", f"status {read['status']}")]
    differences = differing(step.envelope, read, "envelope")
    return wrong + [(f"{path} {_shown(wanted)}", f"{path} {_shown(got)}") for path, wanted, got in differences]


def differing(wanted: Any, got: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """
    Returns (path, wanted, got) for each *got* that is not as *wanted*. Maps are compared by the keys that are wanted,
    lists element by element. A wanted null means that no value is there, and 1 equals 1.0 but not `true`.
    """
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            yield from differing(value, got.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for n, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from differing(one, other, f"{path}.{n}")
    elif isinstance(wanted, bool) is not isinstance(got, bool) or wanted != got:
        yield path, wanted, got


def _shown(value: Any) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False)[:_SHOWN]


@dataclass(frozen=True, slots=True)
class Suite:
    """
    The cases of one file, run by one policy.
    """

    policy: str
    file: str
    results: Sequence[Result]

    @property
    def failed(self) -> list[Result]:
        """
        The cases that did not pass.
        """
        return [result for result in self.results if not result.passed]


def lines(suites: Iterable[Suite]) -> list[str]:
    """
    Returns one line for each failed case, then the sum.
    """
    results = [result for suite in suites for result in suite.results]
    failed = [str(result) for result in results if not result.passed]
    text = f"{plural(len(results), 'case')}, {len(results) - len(failed)} passed"
    return [*failed, f"{text}, {len(failed)} failed" if failed else text]


def to_dict(suites: Iterable[Suite]) -> dict[str, Any]:
    """
    Returns the same for another program.
    """
    listed: list[dict[str, Any]] = [
        {"policy": suite.policy, "file": suite.file, "cases": [result.to_dict() for result in suite.results]}
        for suite in suites
    ]
    passed = [case["passed"] for suite in listed for case in suite["cases"]]
    sums = {"cases": len(passed), "passed": sum(passed), "failed": len(passed) - sum(passed)}
    return {"ok": all(passed), **sums, "suites": listed}
