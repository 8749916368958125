"""
What the commands that learn say where they cannot.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from .printing import fail, tell_of_nothing


@contextmanager
def failures_told() -> Iterator[None]:
    """
    End the command, saying why, where learning or writing a model fails.
    """
    from guardrails.core.values.errors import GuardrailsError, NothingFoundError

    try:
        yield
    except NothingFoundError as error:
        tell_of_nothing(str(error))
    except GuardrailsError as error:
        fail(str(error))
    except ImportError as error:
        fail(f"training needs `{error.name}`: pip install 'toolcall-guardrails[train]'")
    except OSError as error:
        fail(f"cannot use `{error.filename}`: {error.strerror}" if error.filename else str(error))
