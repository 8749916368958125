"""
A server on the loopback that says whatever a test wants, byte by byte.
"""

import socket
import ssl
import threading

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest


Answer = bytes | Callable[[socket.socket, bytes], None]


class Server:
    """
    Gives the answers of *pages* by path; keeps what it was asked.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self.closing = threading.Event()
        self._context: ssl.SSLContext | None = None
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def secure_by(self, context: ssl.SSLContext) -> None:
        self._context = context

    @staticmethod
    def page(
        body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/plain", length: int | None = None
    ) -> bytes:
        """
        An answer; *length* is what it says of itself.
        """
        said = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {said}", *headers, "", ""]
        return "\r\n".join(lines).encode() + body

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self.closing.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in [self._accepting, *self._threads]:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if self._context is not None:
                try:
                    connection = self._context.wrap_socket(connection, server_side=True)
                finally:
                    # A handshake that fails leaves it open.
                    if not isinstance(connection, ssl.SSLSocket):
                        connection.close()
            self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            asked = b""
            while b"\r\n\r\n" not in asked:
                data = connection.recv(65_536)
                if not data:
                    return
                asked += data
            self.asked.append(asked)
            answer = self.pages.get(asked.split()[1].decode(), self.page(b"none", status="404 Not Found"))
            if callable(answer):
                answer(connection, asked)
            else:
                connection.sendall(answer)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def other_server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()
