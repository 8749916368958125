"""
A TCP proxy between workers and a server, which pauses and cuts as it is told.
"""

import random
import selectors
import socket
import threading

from contextlib import suppress
from typing import Final


_CHUNK: Final = 1 << 16
_TICK_S: Final = 0.005
HOLD: Final = 4 << 20
"""Bytes of one direction that wait before no more are read."""


class _Pipe:
    """
    One direction of a connection: what was read from *source* and is still to be sent to *target*.
    """

    def __init__(self, source: socket.socket, target: socket.socket, *, requests: bool) -> None:
        self.source, self.target, self.requests = source, target, requests
        self.waiting = bytearray()
        self.ended = False
        """Its source sends no more; what it has sent still arrives."""


class Proxy:
    """
    A port of this machine, in `port`, whose connections lead to the port *server*. *seed* is of what goes by chance.

    All that is sent waits while `paused`; what the server sends, while `unanswered`. A part of the requests, `lossy`, is the last
    of its connection: half of them arrive and are never answered, the others arrive in part only.
    """

    def __init__(self, server: int, seed: str) -> None:
        self._server = server
        self._random = random.Random(seed)
        self.paused = self.unanswered = False
        self.lossy = 0.0
        self.cuts = 0
        self._cut = False
        self._over = False
        self._listens = socket.create_server(("127.0.0.1", 0))
        self._listens.setblocking(False)
        self.port: Final[int] = self._listens.getsockname()[1]
        self._pipes: list[_Pipe] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listens, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def cut(self) -> None:
        """
        Cut all connections there are, whatever is under way in them.
        """
        self._cut = True

    def close(self) -> None:
        """
        End all connections and the port.
        """
        self._over = True
        self._thread.join()

    def _run(self) -> None:
        while not self._over:
            for key, _ in self._selector.select(_TICK_S):
                if key.fileobj is self._listens:
                    self._accept()
                elif key.data in self._pipes and len(key.data.waiting) < HOLD:
                    self._take(key.data)
            if self._cut:
                self._cut = False
                for pipe in list(self._pipes):
                    self._end(pipe)
            if not self.paused:
                for pipe in list(self._pipes):
                    if pipe.requests or not self.unanswered:
                        self._pass(pipe)
        for pipe in list(self._pipes):
            self._end(pipe)
        self._selector.close()
        self._listens.close()

    def _accept(self) -> None:
        with suppress(OSError):
            client, _ = self._listens.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self._server), 1)
            except OSError:
                client.close()
                return
            for source, target, requests in ((client, server, True), (server, client, False)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                pipe = _Pipe(source, target, requests=requests)
                self._pipes.append(pipe)
                self._selector.register(source, selectors.EVENT_READ, pipe)

    def _take(self, pipe: _Pipe) -> None:
        try:
            data = pipe.source.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            # A network does not know that its sender has died: a request may arrive long after that.
            pipe.ended = True
            self._selector.unregister(pipe.source)
        pipe.waiting += data

    def _pass(self, pipe: _Pipe) -> None:
        if pipe not in self._pipes or not (pipe.waiting or pipe.ended):
            return
        lost = bool(pipe.waiting) and pipe.requests and self._random.random() < self.lossy
        data = bytes(pipe.waiting)
        if lost and self._random.random() < 0.5:
            data = data[: self._random.randrange(len(data) + 1)]
        pipe.waiting.clear()
        try:
            pipe.target.sendall(data)
        except OSError:
            lost = True
        if lost or pipe.ended:
            self._end(pipe)

    def _end(self, pipe: _Pipe) -> None:
        self.cuts += 1
        for each in [each for each in self._pipes if each.source in (pipe.source, pipe.target)]:
            self._pipes.remove(each)
            with suppress(KeyError, ValueError):
                self._selector.unregister(each.source)
            each.source.close()
