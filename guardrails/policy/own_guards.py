"""
A person's own guards in a Python file.
"""

import importlib.util
import sys

from pathlib import Path

from guardrails.core.guards.base import Guard
from guardrails.core.values.errors import PolicyError


def load_guards(file: str) -> tuple[type[Guard], ...]:
    """
    Returns the guards that a Python *file* defines, in their order. The file is run: it is to be one that is trusted.

    Raises PolicyError if it cannot be run or defines no guard.
    """
    path = Path(file)
    if not path.is_file():
        raise PolicyError([f"no file `{file}` with guards"])
    name = f"guardrails_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PolicyError([f"`{file}` is no Python file"])
    module = importlib.util.module_from_spec(spec)
    # The types of its settings are looked up there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PolicyError([f"`{file}` cannot be run: {type(error).__name__}: {error}"]) from error
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == name]
    guards = tuple(each for each in found if issubclass(each, Guard))
    if not guards:
        raise PolicyError([f"`{file}` defines no guard: write `@guard` above a `class Mine(Guard)`"])
    return guards
