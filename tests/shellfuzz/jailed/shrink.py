"""
A failing text made small.
"""

from collections.abc import Callable


def shrunk(text: str, fails: Callable[[str], bool], *, tries: int) -> str:
    """
    A text that still *fails* and loses that if any one character is left out, or what there is after so many *tries*.
    """
    step = max(len(text) // 2, 1)
    while step and tries:
        place, changed = 0, False
        while place < len(text) and tries:
            shorter = text[:place] + text[place + step :]
            tries -= 1
            if fails(shorter):
                text, changed = shorter, True
            else:
                place += step
        if step > 1 or not changed:
            step = min(step // 2, len(text))
    return text
