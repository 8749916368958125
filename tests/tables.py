"""
One table is one test: each row runs, and all rows that fail are named.
"""

import functools
import inspect

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def table(names: str | Iterable[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """
    Runs a test once for each row, with the cells as the arguments *names*; the other arguments stay fixtures.

    The fixtures are made once for all rows. A failure carries its row as a note; a row that skips does not hide the others.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(rows)
    assert rows, "a table without rows cannot fail"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def each_row(**fixtures: Any) -> None:
            failures: list[Exception] = []
            skips: list[BaseException] = []
            for row in rows:
                cells = dict(zip(columns, [row] if len(columns) == 1 else row, strict=True))
                try:
                    test(**fixtures, **cells)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"row: {cells!r}"[:2000])
                    failures.append(error if isinstance(error, Exception) else AssertionError(str(error)))
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(rows)} rows fail", failures)
            if len(skips) == len(rows):
                raise skips[0]

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        each_row.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return each_row

    return decorate
