"""
The model's text as it comes, at a terminal: what is written in between stands on lines of its own.
"""

from typing import TextIO


class Words:
    """
    Text on *stream*; None shows nothing.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._said = ""
        self._midline = False

    @property
    def shown(self) -> bool:
        """
        Returns whether there is anybody to read it.
        """
        return self._stream is not None

    @property
    def fresh(self) -> bool:
        """
        Returns whether nothing stands on its line yet.
        """
        return not self._midline

    def add(self, text: str) -> None:
        """
        Show *text*, which goes on where the last one ended.
        """
        self._said += text
        self._write("".join(char if char.isprintable() or char in "\n\t" else "?" for char in text))

    def showed(self, text: str) -> bool:
        """
        Returns whether *text* is what was shown since the latest `end`.
        """
        return self.shown and bool(text.strip()) and self._said.strip() == text.strip()

    def end(self) -> None:
        """
        End the line: the next text stands on a line of its own.
        """
        if self._midline:
            self._write("\n")
        self._said = ""

    def _write(self, text: str) -> None:
        if self._stream is None or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # Whoever prints the answer finds out that it was not shown.
            self._stream = None
            return
        self._midline = not text.endswith("\n")
