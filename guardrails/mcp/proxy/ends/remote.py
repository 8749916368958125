"""
A server over streamable HTTP as the other end of a tap: each message of the client is a POST, what comes back are lines.
"""

import json
import socket
import threading
import time

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from guardrails.core.values.version import __version__
from guardrails.mcp.proxy.messages import key_of, read

from .connections import CONNECT_S, FAILURES, Connection, Connections, LostError, Response, events
from .lines import MAX_LINE, TOO_LONG


REDIRECTS: Final = 3
RETRIES: Final = 3
"""How often a stream that broke off is taken up again before its answer is given up."""
PAUSE_S: Final = 1.0
STATELESS: Final = "io.modelcontextprotocol/protocolVersion"


class Remote:
    """
    The server at *url*, which is sent *headers*. Its lines go to *say*. The ids of requests whose lines are lost go to
    *lost*.
    """

    def __init__(
        self,
        url: str,
        headers: tuple[tuple[str, str], ...],
        say: Callable[[bytes], None],
        lost: Callable[[Any, str], None],
    ) -> None:
        self._url = url
        self._headers = dict(headers)
        self._say = say
        self._lost = lost
        self._session: str | None = None
        self._version: str | None = None
        self._connections = Connections()
        self._lock = threading.Lock()
        self._streams: dict[str, Connection] = {}
        """Those of requests of a stateless revision that wait for their answers."""
        self._busy = 0
        self._ended = False

    @property
    def busy(self) -> bool:
        """
        Returns whether a request waits for its answer.
        """
        return self._busy > 0

    def send(self, line: bytes) -> None:
        """
        Send what the client said. Returns once the server has it, or, of a request, at once.
        """
        if not line.strip():
            return
        try:
            said = read(line)
        except ValueError:
            said = None
        known = said if isinstance(said, dict) else {}
        method = known.get("method")
        if method == "notifications/cancelled" and self._dropped(known.get("params")):
            return
        asks = method is not None and key_of(known.get("id")) is not None
        if asks and method != "initialize":
            with self._lock:
                self._busy += 1
            threading.Thread(target=self._ask, args=(line, known), name="guardrails-post", daemon=True).start()
            return
        self._post(line, known)
        if method == "notifications/initialized":
            threading.Thread(target=self._listen, name="guardrails-stream", daemon=True).start()

    def _dropped(self, params: Any) -> bool:
        """
        Returns whether a request of a stateless revision was cancelled as that has it: its stream is closed.
        """
        key = key_of(params.get("requestId")) if isinstance(params, dict) else None
        with self._lock:
            connection = None if key is None else self._streams.pop(key, None)
        if connection is None:
            return False
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        return True

    def close(self) -> None:
        """
        End the session of the server.
        """
        self._ended = True
        if self._session is not None:
            with suppress(*FAILURES, LostError):
                response, connection = self._request("DELETE", None, {})
                response.read()
                connection.close()
        self._connections.close()

    def _ask(self, line: bytes, said: dict[str, Any]) -> None:
        try:
            self._post(line, said)
        finally:
            with self._lock:
                self._busy -= 1

    def _post(self, line: bytes, said: dict[str, Any]) -> None:
        id_ = said.get("id") if "method" in said else None
        key: str | None = None
        try:
            # Only an answer may take any time: how long is for the policy to say.
            seconds = CONNECT_S if id_ is None else None
            named = _named(said)
            key = key_of(id_) if named else None

            def opened(connection: Connection) -> None:
                if key is not None:
                    self._streams[key] = connection

            response, connection = self._request("POST", line.strip(), named, seconds, opened)
            if said.get("method") == "initialize":
                self._session = response.getheader("Mcp-Session-Id")
            self._answered(response, connection, id_, greets=said.get("method") == "initialize")
        except (*FAILURES, LostError) as error:
            if key is not None and key not in self._streams:
                # Its client has cancelled it.
                return
            why = "" if isinstance(error, LostError) else "the server cannot be reached: "
            self._lost(id_, f"{why}{str(error) or type(error).__name__}")
        finally:
            with self._lock:
                self._streams.pop(key or "", None)

    def _answered(self, response: Response, connection: Connection, id_: Any, *, greets: bool) -> None:
        kind = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.status == 200:
            self._stream(response, connection, id_, greets=greets)
            return
        body = response.read(MAX_LINE + 1)
        if len(body) > MAX_LINE:
            connection.close()
            raise LostError(TOO_LONG)
        self._connections.give_back(self._url, response, connection)
        if kind == "application/json" and body.strip() and (response.status < 300 or _is_of(body, id_)):
            self._heard(body, greets=greets)
        elif response.status >= 300:
            raise LostError(f"the server answered with HTTP status {response.status}{_reason(response.status, body)}")
        elif id_ is not None:
            raise LostError(f"the server answered with HTTP status {response.status} and no message")

    def _stream(self, response: Response, connection: Connection, id_: Any, *, greets: bool) -> None:
        """
        Pass on the events of a stream until the request *id_* is answered, taken up again if it breaks off.
        """
        last, pause = "", PAUSE_S
        for _ in range(RETRIES + 1):
            try:
                for event in events(response):
                    last, pause = event.id or last, pause if event.wait is None else event.wait
                    if event.data:
                        self._heard(event.data, greets=greets)
                        if id_ is not None and _is_of(event.data, id_):
                            id_ = None
            except FAILURES:
                # Taken up again, if it says where.
                pass
            connection.close()
            if id_ is None:
                return
            if not last:
                break
            time.sleep(pause)
            response, connection = self._request("GET", None, {"Last-Event-ID": last}, None)
            if response.status != 200:
                connection.close()
                break
        raise LostError("the server ended its stream and did not answer")

    def _listen(self) -> None:
        """
        Pass on what the server says unasked, if it has a stream for that.
        """
        last, pause = "", PAUSE_S
        while not self._ended:
            try:
                response, connection = self._request("GET", None, {"Last-Event-ID": last} if last else {}, None)
                if response.status != 200 or "text/event-stream" not in (response.getheader("Content-Type") or ""):
                    connection.close()
                    return
                for event in events(response):
                    last, pause = event.id or last, pause if event.wait is None else event.wait
                    if event.data:
                        self._heard(event.data, greets=False)
                connection.close()
            except (*FAILURES, LostError):
                pause = min(pause * 2, 30.0)
            time.sleep(pause)

    def _heard(self, data: bytes, *, greets: bool) -> None:
        if greets and self._version is None:
            try:
                said = read(data)
                self._version = str(said["result"]["protocolVersion"])
            except (ValueError, TypeError, KeyError):
                pass
        # A newline stands outside of texts only, and ends a line here.
        self._say(data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    def _request(
        self,
        method: str,
        body: bytes | None,
        more: dict[str, str],
        seconds: float | None = CONNECT_S,
        opened: Callable[[Connection], object] | None = None,
    ) -> tuple[Response, Connection]:
        headers = {"Accept": "application/json, text/event-stream", "User-Agent": f"guardrails-mcp/{__version__}"}
        if method == "GET":
            headers["Accept"] = "text/event-stream"
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        if self._version is not None:
            headers["MCP-Protocol-Version"] = self._version
        headers |= {**more, **self._headers}
        url = self._url
        for _ in range(REDIRECTS + 1):
            response, connection = self._connections.request(method, url, body, headers, seconds, opened=opened)
            where = response.getheader("Location")
            if response.status not in (307, 308) or where is None:
                return response, connection
            connection.close()
            moved = urljoin(url, where)
            if urlsplit(moved)[:2] != urlsplit(url)[:2]:
                raise LostError("the server sends its clients to another one, which gets no keys of ours")
            self._url = url = moved
        raise LostError("the server sends its clients round in circles")


def _named(said: dict[str, Any]) -> dict[str, str]:
    """
    Returns the headers that a stateless revision has beside the message *said*.
    """
    params = said.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(STATELESS) if isinstance(meta, dict) else None
    if not isinstance(version, str) or not isinstance(params, dict):
        return {}
    found = {"MCP-Protocol-Version": version, "Mcp-Method": str(said.get("method"))}
    name = params.get("name", params.get("uri"))
    if isinstance(name, str):
        found["Mcp-Name"] = name
    return {key: value for key, value in found.items() if value.isascii() and value.isprintable()}


def _is_of(data: bytes, id_: Any) -> bool:
    """
    Returns whether *data* is the answer of the request *id_*.
    """
    try:
        said = read(data)
    except ValueError:
        return False
    answers = isinstance(said, dict) and "method" not in said
    return answers and json.dumps(said.get("id")) == json.dumps(id_)


def _reason(status: int, body: bytes) -> str:
    """
    Returns the further reason that an HTTP *status* gives.
    """
    if status in (401, 403):
        return ": say who asks by `--header`"
    try:
        return f": {str(read(body)['error']['message'])[:500]}"
    except (ValueError, TypeError, KeyError):
        return ""
