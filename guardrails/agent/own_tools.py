"""
Tools that a person defines in a Python file.
"""

import importlib.util
import inspect

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import PolicyError
from ..registry import Registry
from .settings import AgentError


def load_tools(file: str) -> Registry:
    """
    The tools of a Python *file*: its `registry`, else the functions in its list `tools`, else its public functions.

    Raises AgentError where it cannot be run or defines none.
    """
    module = _run(file)
    own = getattr(module, "registry", None)
    if isinstance(own, Registry):
        return own
    functions = getattr(module, "tools", None) or _public(module)
    registry = Registry()
    try:
        for function in functions:
            registry.register(function)
    except (TypeError, PolicyError) as error:
        raise AgentError(f"`{file}`: {error}") from None
    if not registry.entries:
        raise AgentError(f"`{file}` defines no tools: write functions, a list `tools` or a `Registry` named `registry`")
    return registry


def _run(file: str) -> ModuleType:
    path = Path(file)
    if not path.is_file():
        raise AgentError(f"no file `{file}` with tools")
    spec = importlib.util.spec_from_file_location(f"guardrails_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise AgentError(f"`{file}` is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise AgentError(f"`{file}` cannot be run: {type(error).__name__}: {error}") from error
    return module


def _public(module: ModuleType) -> list[Callable[..., Any]]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
