"""
The small language of commands that are run as they were judged: read once, judged as a tree, run by argv without a shell.
"""

from .reading import MAX_CHARACTERS, read
from .refused import NotInLanguageError
from .tree import Change, Command, Glob, Group, Redirection, Script, Stage, Step, Word, to_data


__all__ = [
    "MAX_CHARACTERS",
    "Change",
    "Command",
    "Glob",
    "Group",
    "NotInLanguageError",
    "Redirection",
    "Script",
    "Stage",
    "Step",
    "Word",
    "read",
    "to_data",
]
