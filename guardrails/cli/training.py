"""
What the commands that learn say where they cannot.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .printing import FOUND, fail


@contextmanager
def failures_told() -> Iterator[None]:
    """
    End the command, saying why, where learning or writing a model fails.
    """
    from guardrails.errors import GuardrailsError, NothingFoundError

    try:
        yield
    except NothingFoundError as error:
        fail(str(error), FOUND)
    except GuardrailsError as error:
        fail(str(error))
    except ImportError as error:
        fail(f"training needs `{error.name}`: pip install 'toolcall-guardrails[train]'")
    except OSError as error:
        fail(f"cannot use `{error.filename}`: {error.strerror}" if error.filename else str(error))
