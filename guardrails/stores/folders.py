"""
The folders of one user for what programs keep, as each platform has them.
"""

import os
import sys


def cache_folder() -> str:
    """
    The folder for what can be made anew: `$XDG_CACHE_HOME/guardrails`, or what the platform has for it.
    """
    return _folder("XDG_CACHE_HOME", (".cache",), ("Library", "Caches"), "LOCALAPPDATA")


def state_folder() -> str:
    """
    The folder for what is to stay: `$XDG_STATE_HOME/guardrails`, or what the platform has for it.
    """
    return _folder("XDG_STATE_HOME", (".local", "state"), ("Library", "Application Support"), "LOCALAPPDATA")


def _folder(variable: str, linux: tuple[str, ...], macos: tuple[str, ...], windows: str) -> str:
    said = os.environ.get(variable, "")
    # The specification has it: a path that is not absolute is to be ignored.
    if not os.path.isabs(said):  # noqa: PTH117
        home = os.path.expanduser("~")  # noqa: PTH111
        if sys.platform == "win32":
            said = os.environ.get(windows) or os.path.join(home, "AppData", "Local")  # noqa: PTH118
        else:
            said = os.path.join(home, *(macos if sys.platform == "darwin" else linux))  # noqa: PTH118
    return os.path.join(said, "guardrails")  # noqa: PTH118
