"""
Refuse a call whose arguments do not fit the tool.
"""

import re

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from guardrails.core.retries.serving import Stakes
from guardrails.core.values.types import INVALID, Denial, NextAction, Problem, ToolCall

from .base import Codes, Facts, Guard, SessionState, Verdict, guard


MOSTLY: Final = 0.5
"""Above it a call that misses something is more often corrected than not."""


@guard
class Validation(Guard):
    """
    Turn what is wrong with a call's arguments into a `validation_error` that says how to go on.

    The check itself runs before every guard, at the boundary, since it also coerces what is signed. With a model of the
    `retryable` guard, its records decide whether the user is asked: how often such refused calls of the tool were
    corrected.
    """

    codes: ClassVar[Codes] = {"validation.arguments": ()}

    def checks_fresh(self, tool: str, known: frozenset[str] | None) -> bool:
        return False

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        if not call.problems:
            return None
        asked = frozenset(facts.tool.ask_user)
        action, hint = _learned(call, asked, facts) or advice(call.problems, asked)
        asks = "Take what is missing from the conversation, else ask the user; then call the tool again."
        fix = asks if action == "ask_user" else "Correct the arguments and call the tool again."
        each = [{"field": problem.field, "message": problem.message} for problem in call.problems]
        details = {"errors": each, "user_facing_hint": hint, "retryable_after_correction": True, "next_action": action}
        message = f"The arguments do not fit `{call.tool}`."
        return Denial("validation.arguments", message, fix, "validation_error", details=details)


def advice(problems: Sequence[Problem], ask_user: frozenset[str] = frozenset()) -> tuple[NextAction, str]:
    """
    Returns whether the model should ask the user or correct itself, and the `user_facing_hint` that says so.

    Missing values are taken from the conversation, else the user is asked, unless another argument is a misspelling of the
    missing one. The user is also asked for refused values of the fields in *ask_user*, which only the user can know. These
    are names or dotted paths, with list positions left out. The rest (JSON, names, types, formats, choices) follows from
    the schema alone and is `fix_arguments`.
    """
    misspelt = {_meant(p) for p in problems if p.kind == "unknown"}
    absent = [p.field for p in problems if p.kind == "missing" and p.field not in misspelt]
    doubtful = {p: subject for p in problems if p.kind == "value" and (subject := _subject(p, ask_user))}
    wrong = [p.field for p in problems if p.field not in {*absent, *doubtful.values()} and p not in doubtful]
    ask = [f"Confirm {_listed(doubtful.values())} with the user before retrying."] if doubtful else []
    if absent:
        ask.append(f"Take {_listed(absent)} from the conversation; if it is not there, ask the user. Do not guess.")
    if ask:
        return "ask_user", " ".join([*ask, *([f"Also correct {_listed(wrong)}."] if wrong else [])])
    if any(p.kind == "json" for p in problems):
        return "fix_arguments", "Send the arguments as one valid JSON object; the user need not be asked."
    return "fix_arguments", f"Correct {_listed(wrong)} and call again; the user need not be asked."


def _meant(problem: Problem) -> str:
    """
    Returns the field that the unknown one of *problem* was meant to be, or "".
    """
    match = re.search(r"did you mean `([^`]+)`", problem.message)
    parent, dot, _ = problem.field.rpartition(".")
    return f"{parent}{dot}{match[1]}" if match else ""


def _subject(problem: Problem, ask_user: frozenset[str]) -> str:
    """
    Returns the field of *problem* that only the user can know, or "".
    """
    if not problem.field:
        return next((name for name in re.findall(r"\w+(?:\.\w+)*", problem.message) if name in ask_user), "")
    names = [part for part in problem.field.split(".") if not part.isdigit()]
    return "" if ask_user.isdisjoint((problem.field, ".".join(names), *names)) else problem.field


def _listed(fields: Iterable[str]) -> str:
    names = [f"`{field}`" if field else "the arguments" for field in dict.fromkeys(fields)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _learned(call: ToolCall, asked: frozenset[str], facts: Facts) -> tuple[NextAction, str] | None:
    """
    Returns other advice than the usual, if the model that has seen most refused calls of the tool says how often they were corrected. The
    user is asked if that is too seldom to pay, and need not be asked if it is mostly. A field in *asked* is asked for anyway.
    """
    if not facts.models:
        return None
    from guardrails.core.retries.model import ENOUGH, times

    model = max(facts.models.values(), key=lambda one: one.corrections_seen(call.tool, INVALID))
    share = model.correction(call.tool, INVALID)
    if share is None or model.corrections_seen(call.tool, INVALID) < ENOUGH:
        return None
    stakes, action = Stakes(), advice(call.problems, asked)[0]
    rate = f"refused calls of `{call.tool}` are corrected {times(share)}."
    if action == "fix_arguments" and share <= stakes.retry_cost + stakes.fix_cost:
        return "ask_user", f"Ask the user before the next try: {rate}"
    if action == "ask_user" and share > MOSTLY and not any(_subject(problem, asked) for problem in call.problems):
        there = f"Take what is missing from the conversation and call again: {rate}"
        return "fix_arguments", f"{there} Ask the user only if it is not there; do not guess."
    return None
