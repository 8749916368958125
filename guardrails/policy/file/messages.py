"""
The codes that a policy may word in its own way, and the numbers that each wording may use.
"""

from collections.abc import Iterable, Mapping
from string import Template
from typing import Any, Final

from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard
from guardrails.core.guards.held import Held
from guardrails.core.refusals import CODES as ENGINE_CODES
from guardrails.policy.scope_names import scope_name

from .wording import suggestion


Own = Iterable[type[Guard] | Guard]
Numbers = tuple[str, ...] | None
"""Names of the numbers behind a message; None: not known."""


def codes_of(guard: type[Guard] | Guard) -> dict[str, Numbers]:
    """
    Returns the codes of *guard*, its own failure included, each with the numbers that a wording may use.
    """
    return {**(guard.codes or {}), f"{guard.name}.error": ()}


CODES: Final[Mapping[str, Numbers]] = {
    code: numbers for cls in (*GUARDS, Held) for code, numbers in codes_of(cls).items()
} | ENGINE_CODES
"""Those of the library's guards."""


def wrong_code(code: str, own: Own = ()) -> str | None:
    """
    Returns the mistake in *code*, in a policy whose own guards are *own*. Returns None if the code may be worded.
    """
    guards = list(own)
    known: dict[str, Numbers] = dict(CODES)
    for guard in guards:
        known |= codes_of(guard)
    # A guard that does not say which codes it has may have any that begin with its name.
    if code in known or any(code.startswith(f"{guard.name}.") for guard in guards if guard.codes is None):
        return None
    return f"no guard says `{code}`{suggestion(code, list(known))}"


def wrong_numbers(code: str, words: object, own: Own = ()) -> list[str]:
    """
    Returns the `$placeholders` of *words* that have no value in a message of *code*.
    """
    known: dict[str, Numbers] = dict(CODES)
    for guard in own:
        known |= codes_of(guard)
    numbers = known.get(code)
    if numbers is None or not isinstance(words, Mapping):
        return []
    texts = [text for text in words.values() if isinstance(text, str)]
    used = dict.fromkeys(name for text in texts for name in Template(text).get_identifiers())
    there = ", ".join(f"`${name}`" for name in numbers) or "none"
    return [
        f"`${name}` stands for nothing here{suggestion(name, list(numbers))}; there are: {there}"
        for name in used
        if name not in numbers
    ]


def of_scope(code: str) -> str:
    """
    Returns the code that a scope's `user.budget.max_calls` is made of. Returns *code* itself if it names no scope.
    """
    scope, _, rest = code.partition(".")
    try:
        scope_name(scope)
    except ValueError:
        return code
    return rest


# For the check of a document.


def with_codes(messages: Any) -> Any:
    """
    Each wording together with its code, so that both can be looked at in one place.
    """
    return {code: (code, words) for code, words in messages.items()} if isinstance(messages, dict) else messages


def known_code(code: str, *, own: Own = ()) -> str:
    """
    Returns *code*. Raises ValueError if no guard says it. Only the `Policy` knows whether the scope exists.
    """
    wrong = wrong_code(code, own)
    if wrong is not None and wrong_code(of_scope(code), own) is not None:
        raise ValueError(wrong)
    return code


def known_numbers(worded: tuple[str, Any], *, own: Own = ()) -> Any:
    """
    Returns the words of (code, words); raises ValueError for placeholders that stand for nothing.
    """
    code, words = worded
    wrong = wrong_numbers(code if wrong_code(code, own) is None else of_scope(code), words, own)
    if wrong:
        raise ValueError("; ".join(wrong))
    return words
