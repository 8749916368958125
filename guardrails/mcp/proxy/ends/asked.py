"""
One request of a client over HTTP: who asks, and how it is answered.
"""

import json

from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from .connections import Response, kept_of
from .identity import Identity, StrangerError, Whose


class Listening(ThreadingHTTPServer):
    """
    The listening server of one request.
    """

    hosts: frozenset[str]
    """The names that clients may call it by."""
    identity: Identity


class Asked(BaseHTTPRequestHandler):
    """
    One connection of a client.
    """

    protocol_version = "HTTP/1.1"
    server: Listening
    _streams = False

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _whose(self) -> Whose | None:
        """
        Whose the request is. Returns None if nobody may know: the client was told then.
        """
        if not self._allowed():
            self._plain(403, b"")
            self.close_connection = True
            return None
        if self.command == "OPTIONS":
            # A browser asks so before it says who it is.
            return Whose(None, None)
        try:
            return self.server.identity(self.headers)
        except StrangerError as error:
            said = json.dumps({"error": f"this needs {error}"}).encode()
            self._plain(401, said, more=[("WWW-Authenticate", "Bearer")])
            self.close_connection = True
            return None

    def _allowed(self) -> bool:
        """
        Returns whether a page of a stranger, which has found our address, is not who asks.
        """
        hosts = self.server.hosts
        origin = self.headers.get("Origin")
        said = [urlsplit(f"//{self.headers.get('Host', '')}").hostname]
        said += [] if origin is None else [urlsplit(origin).hostname]
        return all(one in hosts for one in said)

    def _begin(self, response: Response) -> None:
        self.send_response_only(response.status)
        for name, value in kept_of(response.getheaders()):
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._streams = True

    def _plain(
        self, status: int, body: bytes, response: Response | None = None, *, more: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.send_response_only(status)
        own = [("Content-Type", "application/json")] if body else []
        for name, value in (*(own if response is None else kept_of(response.getheaders())), *more):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()
