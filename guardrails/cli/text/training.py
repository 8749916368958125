"""
What the commands that learn say where they cannot.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .printing import fail, failures_told, tell_of_nothing


@contextmanager
def training_failures_told() -> Iterator[None]:
    """
    End the command, saying why, where learning or writing a model fails.
    """
    from guardrails.core.values.errors import NothingFoundError

    with failures_told():
        try:
            yield
        except NothingFoundError as error:
            tell_of_nothing(str(error))
        except ImportError as error:
            fail(f"training needs `{error.name}`: pip install 'toolcall-guardrails[train]'")
