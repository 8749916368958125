"""
Transcripts that people have: a format is a generator of two events, `Made` and `Came`, and one join makes calls of them.
"""

from .calls import Came, Format, Made, RecordedCall, Report, Used
from .fields import arguments_of, time_ms
from .files import ReaderError, open_calls


__all__ = [
    "Came", "Format", "Made", "ReaderError", "RecordedCall", "Report", "Used", "arguments_of", "open_calls", "time_ms",
]  # fmt: skip
