"""
Clients that hang up while they wait: what is done for them is broken off, which is how a stateless revision cancels.
"""

import selectors
import socket
import threading

from contextlib import suppress
from typing import Final

from .connections import Connection


LOOK_S: Final = 0.1
"""How long a client that has begun to wait may go unwatched."""


class Hangups:
    """
    Breaks off the connection to a server if the client it works for has hung up. Its thread exists once there is any.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._changed = threading.Condition()
        self._begun = False

    def add(self, client: socket.socket, upstream: Connection) -> None:
        """
        Watch *client*, who waits for what comes from *upstream*.
        """
        with self._changed:
            with suppress(KeyError, ValueError, OSError):
                self._selector.register(client, selectors.EVENT_READ, upstream)
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._run, name="guardrails-hangups", daemon=True).start()
            self._changed.notify()

    def drop(self, client: socket.socket) -> None:
        """
        Watch *client* no more.
        """
        with self._changed, suppress(KeyError, ValueError, OSError):
            self._selector.unregister(client)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._selector.get_map():
                    self._changed.wait()
            for key, _ in self._selector.select(LOOK_S):
                client, upstream = key.fileobj, key.data
                if not isinstance(client, socket.socket):
                    continue
                # Once a client is dropped, what it waited on may be another's.
                with self._changed, suppress(KeyError, ValueError, OSError, AttributeError):
                    if self._selector.get_map().get(client) is not key:
                        continue
                    self._selector.unregister(client)
                    # What it says further is another request, and no end.
                    if not client.recv(1, socket.MSG_PEEK):
                        upstream.sock.shutdown(socket.SHUT_RDWR)
