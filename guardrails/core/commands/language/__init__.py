"""
The small language of commands that are run as they were judged: read once, judged as a tree, run by argv without a shell.
"""

from .files import is_data, runs
from .judged import Judged, OutsideError, Run, judged
from .prepared import prepared
from .reading import MAX_CHARACTERS, read
from .refused import NotInLanguageError
from .rules import speaks
from .tree import Change, Command, Glob, Group, Redirection, Script, Stage, Step, Word, to_data
from .variables import is_harmless


__all__ = [
    "MAX_CHARACTERS",
    "Change",
    "Command",
    "Glob",
    "Group",
    "Judged",
    "NotInLanguageError",
    "OutsideError",
    "Redirection",
    "Run",
    "Script",
    "Stage",
    "Step",
    "Word",
    "is_data",
    "is_harmless",
    "judged",
    "prepared",
    "read",
    "runs",
    "speaks",
    "to_data",
]
