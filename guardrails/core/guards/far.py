"""
A test for limits of a session so far away that no call can be refused by them, nor use one up.
"""

from collections.abc import Iterable

from guardrails.core.guards.session_limits import Far

from .base import Guard


def far_of(guards: Iterable[Guard]) -> Far | None:
    """
    Returns the test that the limits of all *guards* are far. Returns None if there are none, or one of them has no
    test.
    """
    tests = [guard.far() for guard in guards]
    known = [test for test in tests if test is not None]
    if not tests or len(known) < len(tests):
        return None
    if len(known) == 1:
        return known[0]
    return lambda state, now_ms, estimate: all(test(state, now_ms, estimate) for test in known)
