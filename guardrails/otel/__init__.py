"""
OpenTelemetry, by its API only: spans and metrics of tool calls, and records that name them.

    session = policy.session("run-1", telemetry=Telemetry())

Nothing of it is imported before it is asked for.
"""

import sys

from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from .telemetry import Telemetry as Telemetry

__all__ = ["Telemetry", "of_process"]


def of_process() -> "Telemetry | None":
    """
    The telemetry of a process whose program has set a tracer provider, as `opentelemetry-instrument` does. Returns None for
    any other, and imports nothing then.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    from .telemetry import Telemetry as Made

    return Made()


def __getattr__(name: str) -> Any:
    if name != "Telemetry":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from .telemetry import Telemetry as Made

    return Made
