"""
The settings by which workers hold parts of the limits that the sessions of a scope share.
"""

from typing import Annotated, ClassVar, Literal

from guardrails.core.guards.base import Guard, guard
from guardrails.core.values.bounds import Gt
from guardrails.core.values.units import Duration


@guard
class Lease(Guard):
    """
    Let each worker hold a part of the scope's budget, and admit calls from it without asking the shared store.

    It stands in a scope beside its `Budget`, and acts in sessions over `Leases`. It refuses nothing itself.
    """

    scope_settings: ClassVar[tuple[str, ...] | None] = ("lost", "time")

    lost: Literal["burn", "return"] = "burn"
    """The fate of a lost worker's part: it counts as used, or is free again."""
    time: Annotated[Duration, Gt(0)] = 60.0
    """Seconds without a word from a worker, after which it is lost."""
