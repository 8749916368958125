"""
Counts calls and responses, and gauges the rest of budgets.

Labels are bounded: names of tools and codes up to `MAX_LABELS` each, and never a session or the name of a scope's owner.
"""

import threading
import weakref

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import needs
from guardrails.core.values.logs import warn_once
from guardrails.core.values.types import MICRO

from . import names
from .spans import CallSpan


with needs("otel", "`guardrails.integrations.otel`"):
    from opentelemetry.metrics import CallbackOptions, Observation


if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

MAX_LABELS: Final = 200
"""Different names of tools, and codes, after which all others share a label."""
MAX_READ: Final = 1_000
"""Sessions whose budgets are read each time that somebody asks for them."""
OTHER: Final = "_OTHER"
UNITS: Final = {
    "calls_left": "calls",
    "turns_left": "turns",
    "tokens_left": "tokens",
    "cost_left_usd": "usd",
    "seconds_left": "seconds",
}
"""What `Session.progress` has, and the unit that it is in."""


class Labels:
    """
    Names that may be labels of metrics: the first `MAX_LABELS`.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def of(self, name: str) -> str:
        """
        *name*, or the label of all others.
        """
        if name not in self._seen:
            if len(self._seen) >= MAX_LABELS:
                return OTHER
            self._seen.add(name)
        return name


class Budget:
    """
    The budget that the objects of one session share: while one of them is alive, it says what is left.
    """

    __slots__ = ("__weakref__", "read")

    def __init__(self) -> None:
        self.read: Callable[[], dict[str, Any]] | None = None
        """None: the session had no call yet."""


class Metrics:
    """
    The instruments of one meter.
    """

    def __init__(self, meter: "Meter") -> None:
        self._tools, self._codes = Labels(), Labels()
        self._budgets: weakref.WeakSet[Budget] = weakref.WeakSet()
        self._reading = threading.Lock()
        self._calls = meter.create_counter("guardrails.calls", "{call}", "Tool calls that were asked for.")
        self._denials = meter.create_counter("guardrails.denials", "{call}", "Tool calls that were refused, by code.")
        self._retries = meter.create_counter("guardrails.retries", "{call}", "Calls that had failed before.")
        self._tokens = meter.create_counter("guardrails.tokens", "{token}", "Tokens that were charged.")
        self._cost = meter.create_counter("guardrails.cost", "USD", "Money that was charged.")
        self._duration = meter.create_histogram(names.DURATION, "s", "Duration of tool calls that ran.")
        meter.create_observable_gauge(
            "guardrails.budget.left",
            [self._observe],
            description="The least that a session of this process has left of a limit, its scopes' included.",
        )

    def opened(self) -> Budget:
        """
        Returns the budget of a session, which tells how much is left. The session's objects hold it, and it does not
        keep the session alive.
        """
        budget = Budget()
        with self._reading:
            self._budgets.add(budget)
        return budget

    def count(self, call: CallSpan) -> None:
        """
        Count a call that is over. May raise what the SDK raises.
        """
        if call.decision is None:
            return
        tool = self._tools.of(call.tool) if call.known else OTHER
        failed = {} if call.error_type is None else {names.ERROR_TYPE: call.error_type}
        self._calls.add(1, {names.TOOL: tool, names.DECISION: call.decision, **failed})
        if call.code is not None and call.decision == "deny":
            scope = {} if call.scope is None else {names.WHOSE: call.scope}
            self._denials.add(1, {names.TOOL: tool, names.CODE: self._codes.of(call.code), **scope})
        if call.source is not None:
            self._retries.add(1, {names.TOOL: tool, names.RETRY_SOURCE: call.source})
        if call.ran:
            seconds = max(0, call.end_ns - call.start_ns) / 1e9
            self._duration.record(seconds, {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: tool, **failed})
            self._charge(*call.used, {names.USED_BY: "tool", names.TOOL: tool})

    def charged(self, cost: int | None, tokens: int) -> None:
        """
        Count a model response. May raise what the SDK raises.
        """
        self._charge(cost or 0, tokens, {names.USED_BY: "model"})

    def _charge(self, cost: int, tokens: int, labels: dict[str, str]) -> None:
        if cost > 0:
            self._cost.add(cost / MICRO, labels)
        if tokens > 0:
            self._tokens.add(tokens, labels)

    def _observe(self, options: CallbackOptions) -> Iterable[Observation]:
        least: dict[str, float] = {}
        for read in self._readers():
            try:
                for key, left in read().items():
                    if key in UNITS:
                        least[key] = min(left, least.get(key, left))
            except Exception as error:  # noqa: BLE001  whatever a store raises
                warn_once("otel budget", "what is left of a budget cannot be read: %r", error)
        return [Observation(left, {names.UNIT: UNITS[key]}) for key, left in least.items()]

    def _readers(self) -> Iterator[Callable[[], dict[str, Any]]]:
        with self._reading:
            budgets = list(self._budgets)
        for budget in budgets[:MAX_READ]:
            if budget.read is not None:
                yield budget.read
