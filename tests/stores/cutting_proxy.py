"""
Connections to a server of Redis that break, wait or lose what they carry, where a test says.
"""

import random
import select
import socket
import threading
import time

from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any, Final

from guardrails.stores.redis import COMMIT, sha_of


FAULTS: Final = {"before": (0.0, 0.0), "half sent": (0.5, 0.0), "after": (1.0, 0.0), "half answered": (1.0, 0.5)}
"""Where a commit is cut: the part that arrives, and the part of its answer that comes back."""


class CuttingProxy(ThreadingTCPServer):
    """
    Hands on to the server at *port* of this machine what comes to `self.url`, and back.

    A `fault` cuts the next commit, and `again` more. `late` keeps a commit back while its connection is cut, and hands it on when
    `deliver` is called. `silent` swallows all that comes. What the server sends waits while `unanswered`. A part of the requests, `lossy`,
    by a chance of *seed*, is the last of its connection: half of them arrive and are never answered, the others arrive in part only.
    """

    daemon_threads, block_on_close = True, False

    def __init__(self, port: int, seed: str = "") -> None:
        super().__init__(("127.0.0.1", 0), BaseRequestHandler)
        self.url, self._to = f"redis://127.0.0.1:{self.server_address[1]}/0", port
        self._random = random.Random(seed)
        self.fault, self.again, self.cut = "", 0, 0
        self.lossy, self.unanswered = 0.0, False
        self._late: list[tuple[socket.socket, bytes]] = []
        self._open: list[socket.socket] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def deliver(self) -> None:
        """
        Hand on what is late, and wait for its answer.
        """
        for server, asked in self._late:
            with server:
                server.sendall(asked)
                server.recv(1 << 20)

    def cut_all(self) -> None:
        """
        Break all connections that are open.
        """
        while self._open:
            with suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_: object) -> None:
        self.unanswered = False
        self.shutdown()
        self.server_close()
        self.cut_all()

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._to)) as server:
            self._open += [request, server]
            while all(self._passed(one, request, server) for one in select.select([request, server], [], [])[0]):
                pass

    def _passed(self, one: socket.socket, client: socket.socket, server: socket.socket) -> bool:
        """
        Hand on what came from *one*. Returns False if that is the last of the connection.
        """
        data = one.recv(1 << 20)
        # What was sent arrives, also if who sent it has died.
        while self.unanswered and one is server:
            time.sleep(0.005)
        if one is server:
            client.sendall(data)
        elif self.fault not in ("", "silent") and sha_of(COMMIT).encode() in data:
            return self._cut(data, client, server)
        elif self._random.random() < self.lossy:
            server.sendall(data[: len(data) if self._random.random() < 0.5 else self._random.randrange(len(data) + 1)])
            return False
        elif self.fault != "silent":
            server.sendall(data)
        return bool(data)

    def _cut(self, commit: bytes, client: socket.socket, server: socket.socket) -> bool:
        fault, self.cut, self.again = self.fault, self.cut + 1, self.again - 1
        if self.again < 0:
            self.fault = ""
        if fault == "late":
            self._late.append((server.dup(), commit))
            return False
        sent, answered = FAULTS[fault]
        server.sendall(commit[: int(len(commit) * sent)])
        if sent == 1:
            answer = server.recv(1 << 20)
            client.sendall(answer[: int(len(answer) * answered)])
        return False
