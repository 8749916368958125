"""
The listener to the model's text as it comes, and the errors that it raises.
"""

import inspect

from collections.abc import Callable


class Listener:
    """
    Gets text by text. Its error waits for `check`, so that the response it listens to is still read and kept.
    """

    def __init__(self, on_text: Callable[[str], object] | None) -> None:
        self._on_text = on_text
        self._raised: Exception | None = None

    def say(self, text: str) -> object:
        """
        Tell *text*, unless it is empty or the listener has failed; what the listener returned.
        """
        if not text or self._on_text is None or self._raised is not None:
            return None
        try:
            return self._on_text(text)
        except Exception as error:  # noqa: BLE001  raised by `check`
            self._raised = error
            return None

    async def asay(self, text: str) -> None:
        """
        The same for a listener that may be asynchronous.
        """
        said = self.say(text)
        try:
            if inspect.isawaitable(said):
                await said
        except Exception as error:  # noqa: BLE001
            self._raised = error

    def check(self) -> None:
        """
        Raise what the listener raised.
        """
        if self._raised is not None:
            raise self._raised
