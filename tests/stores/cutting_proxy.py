"""
Connections to a server that break, wait or lose what they carry, where a test says.
"""

import random
import select
import socket
import threading
import time

from contextlib import suppress
from typing import Final, Self

from guardrails.stores.redis import COMMIT, sha_of


FAULTS: Final = ("before", "half sent", "after", "half answered")
"""Where a commit can be cut: it took place in those after the second."""


class CuttingProxy:
    """
    Hands on to the server at *port* of this machine what comes to `self.port`, and back; the next *fault* once.

    `late` keeps a commit back while its connection is cut, and hands it on when `deliver` is called. `silent` swallows all
    that comes.

    What the server sends waits while `unanswered`. A part of the requests, `lossy`, by a chance of
    *seed*, is the last of its connection: half of them arrive and are never answered, the others arrive in part only.
    """

    def __init__(self, port: int, seed: str = "") -> None:
        self._to = port
        self._random = random.Random(seed)
        self.unanswered = False
        self.lossy = 0.0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.fault = ""
        self.again = 0
        """How many more times after the first."""
        self.cut = 0
        self._late: list[tuple[socket.socket, bytes]] = []
        self._open: list[socket.socket] = []
        self._end = False
        threading.Thread(target=self._accept, daemon=True).start()

    def deliver(self) -> None:
        """
        Hand on what is late, and wait for its answer.
        """
        for server, asked in self._late:
            server.sendall(asked)
            server.recv(1 << 20)
            _close(server)
        self._late.clear()

    def cut_all(self) -> None:
        """
        Break all connections that are open.
        """
        _close(*self._open)
        self._open.clear()

    def close(self) -> None:
        self._end = True
        _close(self._listening)
        self.cut_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._end:
            client = server = None
            with suppress(OSError):
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, server]
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()
            if client is not None and server is None:
                client.close()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, ValueError):  # of a socket that was closed meanwhile
            while True:
                for one in select.select([client, server], [], [])[0]:
                    data = one.recv(1 << 20)
                    # What was sent arrives, also if who sent it has died.
                    while self.unanswered and one is server and not self._end:
                        time.sleep(0.005)
                    if not data:
                        raise OSError
                    if one is server:
                        client.sendall(data)
                    elif self._asked(data, client, server):
                        return
        _close(client, server)

    def _asked(self, asked: bytes, client: socket.socket, server: socket.socket) -> bool:
        """
        Hand on what was *asked*. Returns whether that was the last of the connection.
        """
        fault = self.fault
        if fault in (*FAULTS, "late") and sha_of(COMMIT).encode() in asked:
            self.cut += 1
            self.again -= 1
            if self.again < 0:
                self.fault = ""
            self._break(fault, asked, client, server)
            return True
        if self._random.random() < self.lossy:
            part = len(asked) if self._random.random() < 0.5 else self._random.randrange(len(asked) + 1)
            server.sendall(asked[:part])
            raise OSError
        if fault != "silent":
            server.sendall(asked)
        return False

    def _break(self, fault: str, asked: bytes, client: socket.socket, server: socket.socket) -> None:
        if fault == "late":
            self._late.append((server, asked))
            _close(client)
            return
        if fault != "before":
            server.sendall(asked[: len(asked) // 2] if fault == "half sent" else asked)
        if fault in ("after", "half answered"):
            answer = server.recv(1 << 20)
            client.sendall(answer[: len(answer) // 2] if fault == "half answered" else b"")
        _close(server, client)


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
