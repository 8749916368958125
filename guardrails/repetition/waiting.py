"""
Which calls are made again until something has happened, told from names and arguments; and whom finding nothing pleases.
"""

import re

from functools import lru_cache
from itertools import islice
from typing import Any, Final


_WAITS: Final = re.compile(
    r"(?:^|[_./-])(?:wait|poll|sleep|status|state|progress|check|await|tail|watch|ping|health)(?:$|[_./-])"
    r"|(?:Status|Wait|Poll|Sleep|Progress|Output)(?:$|[A-Z_])"
    r"|^(?:write_stdin|read_bash|read_output|get_output|read_process)$"
)
"""Names of tools that are asked again until something has happened."""
_SLEEPS: Final = re.compile(r"(?:^|[\s;&|(])(?:sleep|Start-Sleep(?: -\w{1,12})?) \d|--(?:watch|wait)\b")
"""In a command: it waits before it looks."""
_WATCHES: Final = re.compile(
    r"(?:^|[;&|(] ?)(?:kubectl (?:get|rollout|wait|describe|logs)|gh (?:run|pr) (?:view|watch|checks|list)"
    r"|docker (?:compose )?(?:ps|logs|wait)|systemctl (?:is-active|status)|squeue|qstat|nvidia-smi|pgrep)\b"
    r"|:\d{2,5}/(?:healthz?|readyz?|livez?)\b"
)
"""The same: it looks at what changes by itself, pods, jobs, services."""
HEAD: Final = 512
"""Characters of an argument that are searched for it."""
VALUES: Final = 16
"""Arguments of a call that are."""
_INSPECTS: Final = re.compile(r"lint|diagnos|validat|verif|audit|type_?check|get_?errors", re.IGNORECASE)
"""Names of tools that are pleased with what they look at where they bring nothing."""


@lru_cache(maxsize=1024)
def waits(tool: str) -> bool:
    """
    Whether *tool*, by its name, is one that is called again until something has happened.
    """
    return _WAITS.search(tool) is not None


def sleeps(arguments: Any) -> bool:
    """
    Whether a call is a command that is made again until something has happened: it waits first, or looks at work elsewhere.
    """
    return type(arguments) is dict and any(
        type(value) is str
        and (
            _WATCHES.search(value, 0, HEAD) is not None
            or (
                (value.find("leep", 0, HEAD) >= 0 or value.find("--w", 0, HEAD) >= 0)
                and _SLEEPS.search(value, 0, HEAD) is not None
            )
        )
        for value in islice(arguments.values(), VALUES)
    )


@lru_cache(maxsize=1024)
def inspects(tool: str) -> bool:
    """
    Whether it is good news, by its name, that *tool* finds nothing.
    """
    return _INSPECTS.search(tool) is not None
