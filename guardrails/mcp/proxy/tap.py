"""
One connection of a client to a server, message by message: the original bytes pass, and calls of tools are looked at.

The library's modules are imported when the server has answered `initialize`, or when they are first needed: lines flow
before.
"""

import sys
import threading

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .deadlines import Deadlines
from .messages import answer, cancelled, carrying, failure, ids, key_of, read, tell_person, unguarded, written


if TYPE_CHECKING:
    from guardrails.mcp.runs import Run

    from .calls import Calls, OpenCall


Send = Callable[[bytes], None]
"""Sends whole lines."""
_NAMES: Final = (b"tools", b"\\", b'"initialize"')
MAX_LATE: Final = 1_000  # calls whose answers may still come


class Tap:
    """
    The tap between *to_client* and *to_server*; *made* gives the guards when they are first needed. The calls are of
    *run*, if that is known otherwise; *deadlines* may be those of several.

    Safe in any number of threads: the lines of each side come from one of its own.
    """

    def __init__(
        self,
        to_client: Send,
        to_server: Send,
        made: "Callable[[], Calls]",
        *,
        run: "Run | None" = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        self._to_client = to_client
        self._to_server = to_server
        self._made = made
        self._calls: Calls | None = None
        self._failed: Exception | None = None
        self._loading = threading.Lock()
        self._open: dict[str, OpenCall] = {}
        self._late: dict[str, OpenCall] = {}
        """Calls that were answered since their time was up."""
        self._lists: set[str] = set()
        """Requests of `tools/list`."""
        self._greeting: str | None = None
        """The request `initialize`, until it is answered."""
        self._carrier: dict[str, str] = {}
        self._read = False
        """JSON text in the arguments of the message at hand was read."""
        self._lock = threading.Lock()
        self._run = run
        self._deadlines = Deadlines() if deadlines is None else deadlines

    def calls(self) -> "Calls":
        """
        The guards. Raises what making them raised, each time.
        """
        if self._calls is None:
            with self._loading:
                if self._failed is not None:
                    raise self._failed
                if self._calls is None:
                    try:
                        self._calls = self._made()
                    except Exception as error:
                        tell_person(error)
                        self._failed = error
                        raise
        return self._calls

    @property
    def waiting(self) -> bool:
        """
        Returns whether a call is open.
        """
        return bool(self._open)

    # Of the client

    def from_client(self, line: bytes) -> None:
        """
        Pass on what the client said.
        """
        try:
            # An escape may hide a name; anything else that names none is no call.
            blank = self._calls is None and not any(one in line for one in _NAMES)
            said: Any = None if blank else read(line)
        except ValueError:
            said = None
        self._carrier, self._read = {}, False
        passed = [one for one in said if self._asked(one)] if isinstance(said, list) else said
        if passed is said and self._asked(said):
            line = written(said) if self._read else line
            self._to_server(carrying(line, self._carrier) if self._carrier else line)
        elif passed is not said and (passed or not said):
            self._to_server(line if len(passed) == len(said) and not self._read else written(passed))

    def _asked(self, said: Any) -> bool:
        """
        Returns whether the server is to have the message *said*.
        """
        method = said.get("method") if isinstance(said, dict) else None
        if method == "tools/call":
            return self._call(said)
        if method == "tools/list" and (key := key_of(said.get("id"))) is not None:
            with self._lock:
                self._lists.add(key)
        elif method == "notifications/cancelled":
            self._cancel(said.get("params"))
        elif method == "initialize":
            self._greeting = key_of(said.get("id"))
        return True

    def _call(self, said: dict[str, Any]) -> bool:
        id_ = said.get("id")
        key = key_of(id_)
        asked: Any
        try:
            asked = self.calls().ask(id_, said.get("params"), self._run)
        except Exception as error:  # noqa: BLE001  own failures go by the policy, if there is one
            if error is not self._failed:
                tell_person(error)
            asked = unguarded(error) if self._calls is None or self._calls.denies_on_error else None
        if isinstance(asked, dict):
            if key is not None:
                self._to_client(written(answer(id_, asked)))
            return False
        if asked is not None:
            self._carrier = asked.carrier
            if isinstance(asked.arguments, dict) and asked.decision.call.arguments is not asked.arguments:
                # JSON text in them was read, as the server's schema says.
                said["params"]["arguments"], self._read = asked.decision.call.arguments, True
            if key is None:
                # Nobody will hear of it.
                self.calls().end(asked, None)
                return True
            with self._lock:
                before = self._open.pop(key, None)
                self._open[key] = asked
                self._late.pop(key, None)
            if asked.limit is not None:
                self._deadlines.add(asked.limit.seconds, asked, partial(self._overdue, key))
            if before is not None:
                self.calls().drop(before)
        return True

    def _cancel(self, params: Any) -> None:
        key = key_of(params.get("requestId")) if isinstance(params, dict) else None
        with self._lock:
            call = None if key is None else self._open.pop(key, None)
        if call is not None:
            self.calls().drop(call)

    # Of the server

    def from_server(self, line: bytes) -> None:
        """
        Pass on what the server said.
        """
        if not (self._open or self._lists or self._late or self._greeting is not None or b"list_changed" in line):
            self._to_client(line)
            return
        try:
            said = read(line)
        except ValueError:
            said = None
        if isinstance(said, list):
            made = [self._answered(one) for one in said]
            kept = [one for one in made if one is not None]
            changed = len(kept) != len(said) or any(one is not own for one, own in zip(kept, said, strict=True))
            shown: Any = kept if changed else said
        else:
            shown = self._answered(said)
        if shown is said:
            self._to_client(line)
        elif shown:
            # What JSON cannot say is passed on as it came.
            with suppress(ValueError):
                line = written(shown)
            self._to_client(line)

    def _answered(self, said: Any) -> Any:
        """
        Returns the message for the client in the place of *said*: *said* itself if nothing changes, None if the client
        is told nothing.
        """
        if not isinstance(said, dict) or "method" in said or not ("result" in said or "error" in said):
            if self._calls and isinstance(said, dict) and said.get("method") == "notifications/tools/list_changed":
                self._calls.changed()
            return said
        key = key_of(said.get("id"))
        if key is None:
            return said
        with self._lock:
            call, late = self._open.pop(key, None), self._late.pop(key, None)
            listing = key in self._lists
            self._lists.discard(key)
        if key == self._greeting:
            self._greeting = None
            threading.Thread(target=self._prepare, name="guardrails-import", daemon=True).start()
            return said
        if late is not None and call is None:
            self._settled(late, said)
            return None
        if call is None and not listing:
            return said
        made: Any = None
        try:
            made = self.calls().listed(said.get("result")) if call is None else self._settled(call, said)
        except Exception as error:  # noqa: BLE001  the tool has run: its result is never lost
            if error is not self._failed:
                tell_person(error)
        return said if made is None else {**said, "result": made}

    def _settled(self, call: "OpenCall", said: dict[str, Any]) -> Any:
        if "result" in said:
            return self.calls().answer(call, said["result"])
        self.calls().fail(call, said["error"])
        return None

    def _prepare(self) -> None:
        with suppress(Exception):  # whoever calls a tool is told
            self.calls()

    # What the server does not say

    def unanswered(self, why: str) -> None:
        """
        Tell the client that no open call will be answered, and *why*.
        """
        with self._lock:
            calls = list(self._open.values())
            self._open.clear()
        for call in calls:
            self._tell(call, ConnectionError(why))

    def dropped(self, ends: bytes, why: str) -> None:
        """
        Tell the client *why* the message with these *ends* does not come, if one of them says whose answer it is.
        """
        found = ids(ends)
        self.lost(next((id_ for id_ in found if key_of(id_) in self._open), found[0] if found else None), why)

    def lost(self, id_: Any, why: str) -> None:
        """
        Tell the client that the request *id_* is not answered, and *why*.
        """
        key = key_of(id_)
        with self._lock:
            call = self._open.pop(key, None) if key is not None else None
        if call is not None:
            self._tell(call, ConnectionError(why))
            return
        sys.stderr.write(f"guardrails mcp: {why}\n")
        if key is not None:
            self._to_client(written(failure(id_, -32603, why)))

    def close(self) -> None:
        """
        Flush the records.
        """
        if self._calls is not None:
            self._calls.close()

    def _tell(self, call: "OpenCall", outcome: object) -> None:
        try:
            result = self.calls().end(call, outcome)
        except Exception as error:  # noqa: BLE001  whoever waits is told all the same
            tell_person(error)
            result = None
        told = failure(call.id, -32603, str(outcome)) if result is None else answer(call.id, result)
        self._to_client(written(told))

    def _overdue(self, key: str, call: "OpenCall") -> None:
        """
        Answer a call whose time is up, unless it was answered.
        """
        with self._lock:
            if self._open.get(key) is not call or call.limit is None:
                return
            del self._open[key]
            self._late[key] = call
            while len(self._late) > MAX_LATE:
                del self._late[next(iter(self._late))]
        error = call.limit.error()
        self._tell(call, error)
        # A server that reads nothing any more would hold up what is due after this.
        threading.Thread(target=self._to_server, args=(written(cancelled(call.id, str(error))),), daemon=True).start()
