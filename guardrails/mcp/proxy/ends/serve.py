"""
The life of a proxy that listens.
"""

import signal
import sys
import threading

from types import FrameType
from typing import TYPE_CHECKING

from guardrails.core.values.errors import MissingExtra
from guardrails.mcp.proxy.options import Options, UsageError

from .listen import Gate


if TYPE_CHECKING:
    from guardrails.policy.policy import Policy


def run(options: Options, policy: "Policy | None") -> int:
    """
    Listen as *options* say until a signal comes; 0, or 1 if that cannot be.
    """
    try:
        gate = Gate(options, policy)
    except (UsageError, MissingExtra) as error:
        sys.stderr.write(f"guardrails mcp: {error}\n")
        return 2
    except (OSError, OverflowError) as error:
        sys.stderr.write(f"guardrails mcp: cannot listen on {options.listen}: {error}\n")
        return 1

    def stop(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=gate.shutdown).start()

    for name in ("SIGTERM", "SIGINT"):
        signal.signal(getattr(signal, name), stop)
    sys.stderr.write(f"guardrails mcp: listening on port {gate.server_port}\n")
    sys.stderr.flush()
    gate.serve_forever(0.2)
    gate.end()
    return 0
