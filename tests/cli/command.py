"""
The command line, as the tests of its commands call it.
"""

from typing import Any

from typer.testing import CliRunner, Result

from guardrails.cli import app


def guardrails(*words: object, columns: int = 100, **more: Any) -> Result:
    """
    The end of the command of these *words* at a terminal of so many *columns*.
    """
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [*map(str, words)], **more)
