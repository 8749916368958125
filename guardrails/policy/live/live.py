"""
A policy while its sessions run: it may be stopped, and its files may become others.
"""

from time import monotonic

from guardrails.core.engine.refusals import stopped
from guardrails.core.values.types import Denial

from .files import PolicyFiles
from .switch import LOOK_S, SWITCH


class Live:
    """
    The parts that a session looks at before each call: `stop`, and whether `chain` is another than it was.
    """

    stop: Denial | None = None
    """Why every call is refused; None: calls are decided."""
    due_s: float = 0.0
    """When it is to `look` again, by `time.monotonic`."""
    files: PolicyFiles | None = None
    """The files it is made of, as long as they are looked at."""
    _own_stop: Denial | None = None

    def deny_all(self, reason: str | None) -> None:
        """
        Refuse every call of this policy's sessions from now on. The model and the records are told the *reason*. None
        lets calls through again. Calls that run are settled, and no session's state changes.

        For all processes of a user at once there is `guardrails policy deny-all`.
        """
        self._own_stop = None if reason is None else stopped(reason)
        self.due_s = 0.0

    def look(self) -> None:
        """
        Look whether calls are stopped, or files have changed. A mistake in a file is logged, and changes nothing.
        """
        now_s = monotonic()
        self.stop = self._own_stop or SWITCH.look(now_s)
        if self.files is not None:
            self.files.look(self)
        # Last: a look that a signal breaks off is made again at once.
        self.due_s = now_s + (LOOK_S if self.files is None else min(LOOK_S, self.files.every_s))

    @property
    def digest(self) -> str | None:
        """
        The digest of the contents of its files. None if they are not looked at.
        """
        return None if self.files is None else self.files.digest

    @property
    def changed(self) -> bool:
        """
        Whether its files have changed since it was loaded.
        """
        return self.files is not None and self.files.changed
