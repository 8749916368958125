"""
Prints the texts of the commands, in any encoding of the terminal.
"""

import sys


def say(text: str, *, error: bool = False) -> None:
    """
    Print *text*; what the encoding cannot say is escaped.
    """
    stream = sys.stderr if error else sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
