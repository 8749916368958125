"""
What the tests of transcripts share: reading from memory, and the fixtures of each format.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from guardrails.offline.transcripts import RecordedCall, Report
from guardrails.offline.transcripts.files import calls_in


Read = Callable[..., tuple[list[RecordedCall], Report]]
FILES = Path(__file__).parent / "files"


@pytest.fixture
def files() -> Path:
    return FILES


@pytest.fixture
def read() -> Read:
    """
    The calls in a transcript that is text, bytes, or the name of a fixture, and the report; the format is told by the content.
    """

    def run(what: str | bytes, file: str = "given") -> tuple[list[RecordedCall], Report]:
        data = what if isinstance(what, bytes) else what.encode("utf-8", "surrogatepass")
        if isinstance(what, str) and (FILES / what[:100]).is_file():
            data, file = (FILES / what).read_bytes(), what
        report = Report()
        return calls_in(data, file, report), report

    return run
