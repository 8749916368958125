"""
The proxy of a server that is started here: its lines and the client's, over standard input and output.
"""

import os
import signal
import threading

from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Final

from guardrails.mcp.proxy.options import Options
from guardrails.mcp.proxy.tap import Tap

from .child import Child
from .lines import TOO_LONG, TooLong, Writer, lines


if TYPE_CHECKING:
    from guardrails.policy.policy import Policy


LEFT_S: Final = 0.5
"""How long the output of a server that has ended may still be read: something else may hold it open."""
PATIENCE_S: Final = 60.0
"""How long a client that has said all is kept answering its open calls."""
SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGHUP")


class Waker:
    """
    The event that the main thread waits for: another thread's word, or a signal, in any thread it is delivered to.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came."""
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                signal.signal(number, self._asked)

    def wait(self) -> None:
        """
        Wait until anything happens.
        """
        os.read(self._read, 1)

    def set(self) -> None:
        """
        Something happened.
        """
        with suppress(BlockingIOError):
            os.write(self._write, b"x")

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.number = number


class Front:
    """
    The standard input and output of this process, before *child*.
    """

    def __init__(self, child: Child, options: Options, policy: "Policy | None") -> None:
        from guardrails.mcp.proxy.loading import calls_of

        self._child = child
        self._client = Writer(1)
        self._server = Writer(child.input)
        self._tap = Tap(self._client.write, self._server.write, lambda: calls_of(options, policy))
        self._woken = Waker()
        self._heard = threading.Thread(target=self._from_server, name="guardrails-server", daemon=True)
        self._said = threading.Thread(target=self._from_client, name="guardrails-client", daemon=True)

    def run(self) -> int:
        """
        The exit code of the server, once it or its client has ended.
        """
        for work in (self._heard, self._said, threading.Thread(target=self._over, daemon=True)):
            work.start()
        self._woken.wait()
        if self._woken.number is None and self._child.code is None and self._heard.is_alive():
            self._finish()
        if self._woken.number is not None:
            self._child.send(self._woken.number)
            code = self._child.end(1.0)
        else:
            code = self._child.end()
        self._heard.join(LEFT_S)
        self._tap.unanswered(f"the server ended with code {code} and did not answer")
        self._tap.close()
        return code

    def _finish(self) -> None:
        """
        Let the server answer what it was asked for: its client has said all.
        """
        self._server.close()
        for _ in range(round(PATIENCE_S / 0.05)):
            if not self._tap.waiting or self._client.gone or self._woken.number is not None:
                return
            if self._child.wait(0.05):
                return

    def _over(self) -> None:
        self._child.wait()
        self._woken.set()

    def _from_client(self) -> None:
        for line in lines(0):
            if isinstance(line, TooLong):
                continue
            self._tap.from_client(line)
        self._woken.set()

    def _from_server(self) -> None:
        for line in lines(self._child.output):
            if isinstance(line, TooLong):
                self._tap.dropped(line, TOO_LONG)
            else:
                self._tap.from_server(line)
        self._woken.set()


class RemoteFront:
    """
    The standard input and output of this process, before the server at the URL of *options*.
    """

    def __init__(self, options: Options, policy: "Policy | None") -> None:
        from guardrails.mcp.proxy.loading import calls_of

        from .remote import Remote

        self._client = Writer(1)
        self._remote = Remote(options.url or "", options.headers, self._heard, self._lost)
        self._tap = Tap(self._client.write, self._remote.send, lambda: calls_of(options, policy))
        self._woken, self._pause = Waker(), threading.Event()

    def run(self) -> int:
        """
        0 once the client has ended, or 128 and the number of the signal that ended it.
        """
        threading.Thread(target=self._from_client, name="guardrails-client", daemon=True).start()
        self._woken.wait()
        for _ in range(round(PATIENCE_S / 0.05)):
            if self._woken.number is not None or self._client.gone or not (self._tap.waiting or self._remote.busy):
                break
            self._pause.wait(0.05)
        self._remote.close()
        self._tap.unanswered("the client ended")
        self._tap.close()
        return 0 if self._woken.number is None else 128 + self._woken.number

    def _heard(self, line: bytes) -> None:
        self._tap.from_server(line)

    def _lost(self, id_: object, why: str) -> None:
        self._tap.lost(id_, why)

    def _from_client(self) -> None:
        for line in lines(0):
            if not isinstance(line, TooLong):
                self._tap.from_client(line)
        self._woken.set()
