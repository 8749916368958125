"""
The end of a process that somebody waits for.
"""

import os
import sys
import threading

from contextlib import suppress
from typing import Final, NoReturn

from guardrails.core.values.errors import needs


with needs("otel", "`guardrails.integrations.otel`"):
    from opentelemetry import metrics, trace


EXIT_S: Final = 2.0
"""Seconds that an export is waited for."""


def leave() -> NoReturn:
    """
    End this process with exit code 0, even if an exporter hangs or fails.
    """
    # The SDK's own end may take a minute, if a collector does not answer.
    exported = threading.Thread(target=_export, daemon=True)
    exported.start()
    exported.join(EXIT_S)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def _export() -> None:
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        # The SDK has it, and the API does not.
        flush = getattr(provider, "force_flush", None)
        with suppress(Exception):
            if flush is not None:
                flush(round(EXIT_S * 1000))
