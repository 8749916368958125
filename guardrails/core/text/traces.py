"""
Text without stack traces.
"""

from typing import Final

from guardrails.core.values.pattern import pattern


TRACEBACK: Final = "Traceback (most recent call last)"
_TRACES: Final = r"""(?mx)^-{20,}\n\ *[A-Z]\w{2,60}\ {2,80}Traceback\ \(most\ recent\ call\ last\)\n(?:.*\n)*(?=.*\S)
    |[ \t]?(?:\+\ Exception\ Group\ |[|]\ )?Traceback\ \(most\ recent\ call\ last\):?(?=[ \t]*\n)
    |^[ |]+[ \t]File\ "[^"\n]{1,1000}",\ line\ \d[^\n]*\n(?:^(?:\ *\|[ \t]{2,}|[ \t]+(?![ \t|]))[^\n]*\n|\n)*
    |^[^\n]*\n{1,3}(?:During\ handling\ of\ the\ above\ exception|The\ above\ exception\ was\ the\ direct\ cause)[^\n]*\n
    |^[ \t]+at\ \S.*(?::\d+\)?|\((?:native|Native\ Method|Unknown\ Source|<anonymous>)\))$\n?|^[ \t]+\.\.\.\ \d+\ more$\n?
    |^[ |]*\+-[+-]*(?:\ \d+\ -+)?$\n?"""
"""Of IPython, of Python (and those before it in a chain), of JavaScript and Java."""
_TRACED: Final = ("Traceback ", ' File "', '\tFile "', "bove exception", " at ", "\tat ", " ... ", "\t... ", "+-")
"""Each of them has one of these."""


def untraced(text: str) -> str:
    """
    Returns *text* without its stack traces: the line stays that names the error that got out.
    """
    text = text if "\n" in text or TRACEBACK not in text else text.replace("\\n", "\n")
    # To look for them all takes as long as reading the rest of a failure.
    traced = "\n" in text and any(word in text for word in _TRACED)
    return pattern(_TRACES).sub("", text) if traced else text
