"""
Python files of a person's own, which define tools or guards.
"""

import importlib.util
import sys

from pathlib import Path
from types import ModuleType


def run_file(file: str, holds: str) -> ModuleType:
    """
    Returns the module of a Python *file*, which *holds* `tools` or `guards`. It is run: it is to be one that is trusted.

    Raises ImportError if there is none, or it cannot be run.
    """
    name = f"guardrails_own_{holds}_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise ImportError(f"`{file}` is no Python file with {holds}")
    # Types that it names are looked up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ImportError(f"`{file}` cannot be run: {type(error).__name__}: {error}") from error
    return module
