"""
The policy that a command names.
"""

from typing import TYPE_CHECKING

from guardrails.cli.text.printing import FOUND, fail


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.policy.policy import Policy


def load_policy(name: str, own: "tuple[type[Guard], ...]" = ()) -> "Policy":
    """
    Returns the policy *name*, which may have a person's *own* guards; ends the command if it cannot be used.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.policy.file import find
    from guardrails.policy.policy import Policy

    try:
        find(name)
    except PolicyError as error:
        fail(str(error))
    try:
        return Policy.load(name, guards=own)
    except PolicyError as error:
        fail(str(error), FOUND)
