"""
Versions: of Python, of the library, and of what it writes.
"""

import platform

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .packages import OURS


def versions() -> dict[str, Any]:
    """
    The versions by name; and of what is written.
    """
    from guardrails.core.records.record import SCHEMA_VERSION
    from guardrails.core.retries.model_format import VERSION as RETRIES
    from guardrails.core.state.packing import VERSION
    from guardrails.core.values.version import __version__
    from guardrails.stores.sqlite_file import VERSION as FILE

    try:
        installed = version(OURS)
    except PackageNotFoundError:
        installed = None
    return {
        "python": platform.python_version(),
        "library": __version__,
        "installed": installed,
        "folder": str(Path(__file__).parents[2]),
        "state": VERSION,
        "store_file": FILE,
        "records": SCHEMA_VERSION,
        "retry_model": RETRIES,
    }


def wrong_version(found: dict[str, Any]) -> tuple[str, str] | None:
    """
    Returns the broken ones, each with the next step. Returns None if nothing is.
    """
    if found["installed"] in (None, found["library"]):
        return None
    said = f"the installation is {found['installed']}, and `{found['folder']}` is {found['library']}"
    return said, f"pip install --force-reinstall {OURS}"
