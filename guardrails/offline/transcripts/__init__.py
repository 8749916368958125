"""
Transcripts that people have: a format is a generator of two events, `Made` and `Came`, and one join makes calls of them.
"""

from .calls import RecordedCall, Report
from .copies import Copies
from .events import Came, Format, Made, Used, joined
from .fields import arguments_of, time_ms
from .files import format_of, open_calls, open_lines
from .formats import FORMATS, ReaderError, format_names
from .results import settle


__all__ = [
    "FORMATS",
    "Came",
    "Copies",
    "Format",
    "Made",
    "ReaderError",
    "RecordedCall",
    "Report",
    "Used",
    "arguments_of",
    "format_names",
    "format_of",
    "joined",
    "open_calls",
    "open_lines",
    "settle",
    "time_ms",
]
