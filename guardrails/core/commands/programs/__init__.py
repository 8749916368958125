"""
Commands that only read, judged by rules for their programs: what each of a program's options may be, as data.
"""

from .judge import Prepared, Refused, prepared, program_of, reads_only
from .rules import NAMES


__all__ = ["NAMES", "Prepared", "Refused", "prepared", "program_of", "reads_only"]
