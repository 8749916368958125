"""
Rules of an allow list that are no commands, and speak of something in a script all the same.
"""

import re
import shlex

from typing import Final


_VARIABLE: Final = re.compile(r"[A-Za-z0-9_*?{},]+=")


def speaks(text: str) -> bool:
    """
    Returns whether the rule *text*, which is no command in the plain form, is one for a script that is run by argv.
    Such rules are a file that is written (`> out/*`) or read (`< in/*`), a variable (`NODE_ENV=*`), or the program `[`.
    """
    words = shlex.split(text)
    if words[0] in ("<", ">"):
        return len(words) == 2
    return words[0] == "[" or (len(words) == 1 and _VARIABLE.match(words[0]) is not None)
