"""
Readers of transcripts that people have.
"""

from .base import Reader, RecordedCall, Report
from .files import ReaderError, open_calls
from .formats import READERS, recognise


__all__ = ["READERS", "Reader", "ReaderError", "RecordedCall", "Report", "open_calls", "recognise"]
