"""
Readers of transcripts that people have.
"""

from .base import Reader, RecordedCall, Report
from .copies import Copies
from .files import open_calls, open_lines
from .formats import READERS, format_names, recognise
from .text.fields import arguments_of, time_ms
from .text.leading import leading_values
from .text.parsing import parsed_lines, parsed_values
from .text.result_text import settle
from .unpacked import ReaderError


__all__ = [
    "READERS",
    "Copies",
    "Reader",
    "ReaderError",
    "RecordedCall",
    "Report",
    "arguments_of",
    "format_names",
    "leading_values",
    "open_calls",
    "open_lines",
    "parsed_lines",
    "parsed_values",
    "recognise",
    "settle",
    "time_ms",
]
