"""
The answers of guards to a call, the refusals that no guard gives (their codes begin with `call.`), and the words that guards share.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from guardrails.core.state import Question
from guardrails.core.text.control import cleaned
from guardrails.core.values.errors import StateUnreadable
from guardrails.core.values.types import MICRO, Denial, Nudge


if TYPE_CHECKING:
    from .chain import Chain
    from .scopes import Place


IN_FLIGHT: Final = "call.in_flight"
FINISH: Final = "Write the final answer from what you have."
FORCED_ASKS: Final = 2
"""Times the model is asked for its final answer: once, and once more."""
STOPPED: Final = "deny_all.on"
UNCERTAIN: Final = "call.uncertain"
ERROR: Final = "call.error"
_FAILED: Final = """approve budget denials duplicates growth held loops rate retry_budget retryable shell streak summary tool_filter
    tools.budget truncate validation workspace"""
_MERGED: Final = {
    IN_FLIGHT: "duplicates.in_flight",
    ERROR: " ".join(f"{name}.error" for name in _FAILED.split()),
    "budget.max_children": "budget.max_depth",
    "duplicates.evidence": "duplicates.stable",
    "endpoint.failed": "endpoint.refused endpoint.unreachable",
    "loop.no_answer": "loop.no_tools loop.repeated_call",
    "loop.request_limit": "loop.hand_overs loop.max_turns loop.recursion_limit",
    "loops.identical": "loops.reread",
    "loops.same_error": "loops.unrepaired",
    "rate.max_calls_per_minute": "tools.rate.max_calls_per_minute",
    "rate.max_calls_per_second": "tools.rate.max_calls_per_second",
    "shell.deny": "shell.fork_bomb",
    "shell.unreadable": "shell.undecidable",
    "tool_filter.deny": "tool_filter.allow",
    "tools.budget.limit": " ".join(f"tools.budget.max_{name}" for name in ("calls", "cost_usd", "elapsed", "tokens")),
    "workspace.root": "workspace.path",
}
ALIASES: Final = {old: code for code, olds in _MERGED.items() for old in olds.split()}
"""Codes of 0.2.0 under other names, in a policy's `messages:` and cases."""
CODES: Final[dict[str, tuple[str, ...]]] = {
    IN_FLIGHT: (),
    UNCERTAIN: ("reason",),
    ERROR: ("guard",),
    **dict.fromkeys(ALIASES, ()),
}
"""Those that the engine says, with the names of their values."""
UNKNOWN: Final = "interrupted: nobody knows whether it happened"


@dataclass
class Verdicts:
    """
    The answers of guards to a call: those of its session's chain, and of scopes.
    """

    denials: list[Denial] = field(default_factory=list)
    questions: list[Denial] = field(default_factory=list)
    """Those that a person may lift."""
    observed: list[Denial | Nudge] = field(default_factory=list)
    nudges: list[tuple[str, str]] = field(default_factory=list)
    """(code, hint)"""
    errors: list[tuple[str, str]] = field(default_factory=list)
    """(guard, what it raised)"""

    def note(self, verdict: object, place: "Place", *, enforced: bool) -> None:
        """
        Note the *verdict* of a guard of *place*; one that is not *enforced* only observes. Raises TypeError if it is no verdict.
        """
        if isinstance(verdict, Denial):
            denial = place.says(verdict)
            (self.observed if not enforced else self.denials if denial.parks is None else self.questions).append(denial)
        elif not isinstance(verdict, Nudge):
            raise TypeError(f"a check returns a Denial, a Nudge or None, not {type(verdict).__name__}")
        elif enforced:
            self.nudges.append((place.code(verdict.code), place.chain.worded(verdict).hint))
        else:
            self.observed.append(replace(verdict, code=place.code(verdict.code)))

    def fail(self, error: Exception, name: str, place: "Place", *, deny: bool) -> None:
        """
        Note that the guard *name* of *place* raised *error*.
        """
        self.errors.append(failure(error, name := place.code(name)))
        if deny:
            self.denials.append(place.chain.worded(broken(name)))


def failure(error: Exception, name: str) -> tuple[str, str]:
    """
    Returns what is recorded of the guard *name* that raised *error*.
    """
    return name, f"{type(error).__name__}: {error}"


def broken(name: str, *, ends: bool = False) -> Denial:
    """
    Returns the refusal that follows from a guard *name* that raised; if it was asked whether the session *ends*, that it does.
    """
    if ends:
        return end(ERROR, f"The guard `{name}` failed.", guard=name)
    message = f"The guard `{name}` failed, so the call was not made."
    return Denial(ERROR, message, "Use another tool, or tell the user.", strike=False, values={"guard": name})


def uncertain(tool: str, reason: str) -> Denial:
    """
    Returns the refusal of a call that is not to be made twice, while nobody knows how the same call ended.
    """
    why = f" A person said: {reason}" if reason else ""
    message = f"This exact {tool} call was {UNKNOWN}. It was not made again.{why}"
    hint = "Check whether it happened, and tell the user, who can approve it. Do not make it in another way."
    return Denial(UNCERTAIN, message, hint, strike=False, running=True, values={"reason": reason})


def late(tool: str) -> Denial:
    """
    Returns the refusal, once, of a call whose end was unknown until it came late that it had worked.
    """
    message = f"This exact {tool} call was made before, and its end came late: it worked. It was not made again."
    hint = "Use its result. If it is to be made a second time, call it again."
    return Denial(UNCERTAIN, message, hint, "duplicate_call_blocked", strike=False)


def waiting(question: Question) -> Denial:
    """
    Returns the refusal of a call that waits for a person.
    """
    code, message, hint, values = question.code, question.message, question.hint, {"reason": question.reason}
    return Denial(code, message, hint, strike=False, running=True, parks=question.lasts_ms, values=values)


def unbound(tool: str) -> Denial:
    """
    Returns the refusal of a call that a person would have to approve, and whose arguments cannot be told from others.
    """
    message = f"`{tool}` needs a person's approval, and these arguments cannot be shown to one. It was not made."
    hint = "Use plainer arguments: objects, lists, texts and numbers."
    return Denial("approve.refused", message, hint, values={"reason": ""})


def unreachable() -> Denial:
    """
    Returns the refusal of a call while the store does not answer.
    """
    message = "The session's state cannot be reached, so the call was not made."
    return Denial("store.error", message, "Try again later, or tell the user.", strike=False)


def unreadable(error: StateUnreadable) -> Denial:
    """
    Returns the refusal of a call whose kept state this version of the library cannot read; the log tells why.
    """
    message = f"The call was not made: the state of {error.whose or 'this session'} cannot be read."
    hint = "Trying again does not help. Go on without tools, and tell the user."
    return Denial("store.unreadable", message, hint, strike=False)


def stopped(reason: str) -> Denial:
    """
    Returns the refusal of every call after an operator has stopped them all, for a *reason*.
    """
    why = f": {cleaned(reason).rstrip('.')}" if reason else ""
    hint = "Make no further call. Answer with what you have, and tell the user."
    message, values = f"All tool calls are stopped{why}. It was not called.", {"reason": reason}
    return Denial(STOPPED, message, hint, strike=False, values=values)


def over(chain: "Chain", exhausted: tuple[str, str, str]) -> Denial:
    """
    Returns the refusal of every call once a session is *exhausted*, (code, message, hint) of the cause.
    """
    # The message is in the policy's words already, with the numbers of when it was kept.
    code, message, _ = exhausted
    hint = finish(code)
    hint = filled(chain.messages.get(code, {}).get("hint", hint), {}, hint)
    return Denial(code, message, hint, "limit_reached", ends_session=True)


def names_turns(code: str) -> bool:
    """
    Returns whether *code* is of a limit of turns, so that calls of the present one still ran.
    """
    return code.endswith(".max_turns") or code.startswith("loop.")


def finish(code: str) -> str:
    """
    Returns the next step once the limit *code* is used up.
    """
    return f"No more turns with tool calls (`{code}`). {FINISH}" if names_turns(code) else FINISH


def end(code: str, message: str, **values: object) -> Denial:
    """
    Returns the end of a session that its *message* tells.
    """
    text = f"{message} Stopping tool loop."
    return Denial(code, text, finish(code), "limit_reached", ends_session=True, values=values)


def ended(code: str, what: str, limit: str, used: object) -> Denial:
    """
    Returns the end of a session whose limit *what* is used up.
    """
    return end(code, f"{what} reached ({limit}).", limit=limit, used=used)


def usd(micro: int) -> str:
    """
    Returns micro-dollars as a person writes them: `$0.50`.
    """
    whole, part = divmod(abs(micro), MICRO)
    digits = f"{part:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if micro < 0 else ''}${whole}.{digits}"


def counted(amount: int, what: str) -> str:
    return f"{amount} {what}{'' if amount == 1 else 's'}"


def in_flight(tool: str) -> Denial:
    """
    Returns the refusal of a call while the same call is open.
    """
    message = f"This exact {tool} call was begun before and has not ended, as far as is known. It was not made again."
    hint = "Wait for its result. If none comes, it may have happened: check before you make it again."
    return Denial(IN_FLIGHT, message, hint, "duplicate_call_blocked", running=True)


def filled(text: str, values: Mapping[str, object], otherwise: str) -> str:
    """
    Returns *text* with *values* for its placeholders; *otherwise* if one of them has none.
    """
    from string import Template

    template = Template(text)
    return template.safe_substitute(values) if values.keys() >= set(template.get_identifiers()) else otherwise
