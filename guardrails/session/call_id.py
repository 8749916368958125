"""
Ids for calls that come without one.
"""

import itertools
import os


_numbers = itertools.count(1)
_prefix = os.urandom(4).hex()


def new_id() -> str:
    """
    An id that no other call of any process has.
    """
    return f"{_prefix}-{next(_numbers)}"


def _renew_prefix() -> None:
    global _prefix  # noqa: PLW0603  a forked child must not draw its parent's ids
    _prefix = os.urandom(4).hex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_prefix)
