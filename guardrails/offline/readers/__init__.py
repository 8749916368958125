"""
Readers of transcripts that people have.
"""

from .base import Reader, RecordedCall, Report
from .copies import Copies
from .files import open_calls, open_lines
from .formats import READERS, recognise
from .unpacked import ReaderError


__all__ = [
    "READERS",
    "Copies",
    "Reader",
    "ReaderError",
    "RecordedCall",
    "Report",
    "open_calls",
    "open_lines",
    "recognise",
]
