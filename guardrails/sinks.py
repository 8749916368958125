"""
Write records off the hot path, one JSON line each, and read them back.

`put` appends to a queue in memory and returns; one daemon thread per sink turns records into lines and appends them to
the file in batches. A batch is whole lines, written under `flock`, so several processes may share one file (a regular
file on a local POSIX file system).

What is lost, and when: nothing on a clean exit. After `kill -9` (or SIGTERM without a handler, or `os._exit`) the
records of the last flush interval and the batch being written; while the writer is behind or the file is faulty, what
the queue holds. Lines are handed to the operating system, not forced to the disk: a power failure may take more.

What a line holds: a record is written whatever its values are. Bytes become UTF-8 text or else base64, sets lists, NaN
and infinities null, decimals and paths text, pydantic models and dataclasses objects. Integers beyond 64 bits stay exact
up to 4,300 digits (hexadecimal text above), a lone surrogate is escaped, keys become text; deeper than 200 levels, a
cycle, or any other type leaves `<its type>`, since a repr may be long, unstable or secret.
"""

import atexit
import base64
import errno
import fcntl
import json
import logging
import math
import os
import re
import select
import stat
import sys
import threading
import time
import weakref

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from fnmatch import translate
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, get_args, runtime_checkable

import orjson


Record = dict[str, Any]
Entry = Record | Callable[[], Record]
"""A record, or a function without parameters that makes it off the hot path."""
ErasePath = tuple[Callable[[str], object] | None, ...]
"""For each segment a test of a key in folded case; None stands for any number of keys."""
Arguments = Literal["full", "hash", "off"]
Results = Literal["full", "hash", "off"]

MAX_QUEUED_BYTES: Final = 64 * 2**20
FLUSH_INTERVAL_MS: Final = 50
BATCH_BYTES: Final = 64 * 2**10
"""One write: bounds the tail that a kill may take, and how long other processes wait for the file."""
WAIT_S: Final = 1.0
"""How long a write waits for another process's lock, or for the reader of a full pipe, before that is a fault."""
MIN_BACKOFF_S: Final = 0.01
MAX_BACKOFF_S: Final = 5.0
MAX_DEPTH: Final = 200
"""Below orjson's 254 and Python's 1,000."""
PAYLOADS: Final = {
    "arguments": ("sig", "near_sig"),
    "result": ("result_hash", "result_hash_masked"),
}
"""The keys of a record that hold what the caller's tools saw and said, and the keys that hold their hashes."""

log = logging.getLogger("guardrails")


@runtime_checkable
class Sink(Protocol):
    """
    Where records go. Every record that was put is counted once: written, dropped (no room, or closed) or failed.
    """

    @property
    def written(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def failed(self) -> int: ...

    def put(self, record: Entry, size_hint: int) -> None:
        """
        Hand *record* over, about *size_hint* bytes of it; called on the hot path, never raises.

        The record, and what a function will make it from, belong to the sink from here on and must not be changed.
        """

    def flush(self, timeout: float | None = None) -> bool:
        """
        Wait up to *timeout* seconds until all that was put is written; False where it is not.
        """

    def close(self) -> None:
        """
        Flush; what is put later is dropped. A second close does nothing.
        """


class OnRecord:
    """
    Call *on_record* with each record, at once and in the caller's thread; what it raises is counted and said once.
    """

    def __init__(self, on_record: Callable[[Record], object]) -> None:
        self._on_record = on_record
        self._counting = threading.RLock()
        self._closed = False
        self.written = self.dropped = self.failed = 0

    def put(self, record: Entry, size_hint: int = 0) -> None:
        if self._closed:
            with self._counting:
                self.dropped += 1
            return

        try:
            self._on_record(record() if callable(record) else record)
        except Exception as error:  # noqa: BLE001  a record never fails the call it is about
            with self._counting:
                self.failed += 1
                first = self.failed == 1
            if first:
                _say(logging.WARNING, "`on_record` raised `%s`, the record is lost", type(error).__name__)
        else:
            with self._counting:
                self.written += 1

    def flush(self, timeout: float | None = None) -> bool:
        return True

    def close(self) -> None:
        self._closed = True


class MemorySink(OnRecord):
    """
    Keep the records, as they were put, in the list *records*; for tests.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        super().__init__(self.records.append)


class JsonLines:
    """
    Append records to the file *path*, from a daemon thread that starts with the first record.

    *max_queued_bytes* bounds what waits in memory, by the size hints: beyond it records are dropped, counted, and the
    log says so once. *flush_interval_ms* is how long a record waits at most while a batch gathers.

    *redact* names values to erase by dotted path from the top of the record: each segment is a glob (`*`, `?`, `[a-z]`,
    blind to case) for one key or list index, `**` stands for any number of them. The line lists in `erased` what went.
    An element of a list becomes null. Where a path leads into `arguments` or `result` and that is bare text, all of it
    is erased. *arguments* and *results* say what stays of those two: "full", "hash" (only their hashes), "off" (nothing).

    A value of a record may be a function without parameters, called in the thread (only at the top of the record, for
    a function in the arguments is the caller's), and `arguments` and `result` may be JSON already, as `orjson.Fragment`
    or bytes.

    A missing folder is made, the file is its owner's only (0600) if it is new, and a torn line that a killed process or
    a full disk left is ended before the next. A fault is said once, retried with growing pauses until it is over (said
    too), and meanwhile records wait in the queue; what cannot be written at `close` counts as failed. A forked child
    starts empty, with its own thread and counts. Raises ValueError for a setting that is not valid.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        flush_interval_ms: float = FLUSH_INTERVAL_MS,
        redact: tuple[str, ...] = (),
        arguments: Arguments = "full",
        results: Results = "hash",
    ) -> None:
        # A chdir must not move the file.
        self.path = Path(path).absolute()
        self._max_queued = max_queued_bytes
        self._interval = min(max(flush_interval_ms, 0) / 1000, threading.TIMEOUT_MAX)
        self._paths = tuple(parse_path(text) for text in ((redact,) if isinstance(redact, str) else redact))
        self._withheld = _withheld("arguments", arguments) | _withheld("result", results)
        self._closed = False
        self._begin()
        _live.add(self)

    def _begin(self) -> None:
        self.written = self.dropped = self.failed = 0
        self._queue: deque[tuple[Entry, int]] = deque()
        self._queued = 0
        self._ring_at = 0
        self._batch = b""
        self._batch_hint = 0
        self._flushes: deque[_Flush] = deque()
        self._faults = 0
        self._said_dropped = False
        self._fd = -1
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        # Reentrant: a log or signal handler may come back while this thread holds them.
        self._counting = threading.RLock()
        self._writing = threading.RLock()

    def put(self, record: Entry, size_hint: int) -> None:
        queued = self._queued + size_hint
        if queued > self._max_queued or self._closed:
            self._drop()
            return

        # No lock: CPython does not switch threads between the read above and this write. Where it did, the sum would
        # be off by one record until the queue is next empty.
        self._queued = queued
        self._queue.append((record, size_hint))
        if queued >= self._ring_at:
            self._ring()

    def flush(self, timeout: float | None = None) -> bool:
        """
        Wait up to *timeout* seconds until all that was put is in the file; False where it is not.

        A fault ends the wait at once. In the writer's own thread (a finaliser may run there) the answer is False.
        """
        if self._thread is threading.current_thread():
            return False

        flush = _Flush()
        self._flushes.append(flush)
        if self._thread is not None or self._queue:
            self._ring()

        if self._thread is None:
            with self._writing:
                return self._write_queued()

        return flush.wait(timeout) and flush.written

    def close(self) -> None:
        """
        Write what is queued; what cannot be written counts as failed, what is put later as dropped.
        """
        self._closed = True
        self._ring()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join()

        with self._writing:
            # What the thread could not write, or no thread was there for.
            self._write_queued()
            lost = self._batch.count(b"\n") + len(self._queue)
            self._batch = b""
            self._queue.clear()
            self.failed += lost
            # Later ones are dropped because it is closed, which is no news.
            self._said_dropped = True

        if lost:
            _say(logging.WARNING, "%d records for `%s` could not be written and are lost", lost, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin_in_child(self) -> None:
        """
        Begin anew in a forked child: the parent writes what was queued. Called after every fork.
        """
        fd = self._fd
        self._begin()
        if fd >= 0:
            os.close(fd)

    def _drop(self) -> None:
        with self._counting:
            self.dropped += 1

        if not self._said_dropped:
            self._ring()

    def _ring(self) -> None:
        if self._thread is None:
            self._start()
        elif self._bell.locked():
            # Somebody else may be quicker.
            with suppress(RuntimeError):
                self._bell.release()

    def _start(self) -> None:
        if self._closed or not self._starting.acquire(blocking=False):
            return

        try:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="guardrails-records", daemon=True)
                self._thread.start()
                _flush_in_pool_process(self)
        except RuntimeError:
            # No thread to be had, or the interpreter is going down: the next put tries again, flush and close write.
            self._leave()
        finally:
            self._starting.release()

    def _run(self) -> None:
        try:
            while True:
                self._ring_at = 0
                if not (self._queue or self._batch or self._flushes or self._closed):
                    self._queued = 0
                    self._bell.acquire()

                if not self._batch:
                    self._wait(BATCH_BYTES, self._interval)

                with self._writing:
                    whole = self._write_queued()

                if self._closed:
                    return

                if not whole:
                    pause = max(self._interval, MIN_BACKOFF_S) * 2 ** min(self._faults, 16)
                    self._wait(sys.maxsize, min(pause, MAX_BACKOFF_S))
        finally:
            self._leave()

    def _wait(self, ring_at: int, seconds: float) -> None:
        self._ring_at = ring_at
        # An earlier ring must not end this wait. Who rings from here on has left word first: it is looked for below.
        self._bell.acquire(blocking=False)
        if not (self._flushes or self._closed or self._queued >= ring_at):
            self._bell.acquire(timeout=seconds)

    def _leave(self) -> None:
        self._thread = None
        # Without a thread nobody answers them.
        while self._flushes:
            self._flushes.popleft().set()

    def _write_queued(self) -> bool:
        """
        Write what is queued by now, and answer the flushes that came before; False where a fault stopped it.
        """
        flushes = [self._flushes.popleft() for _ in range(len(self._flushes))]
        left = len(self._queue)
        error = None
        while error is None and (left or self._batch):
            if not self._batch:
                left -= self._gather(left)

            error = self._append()

        self._report(error)
        for flush in flushes:
            flush.written = error is None
            flush.set()

        return error is None

    def _gather(self, most: int) -> int:
        lines: list[bytes] = []
        size = taken = 0
        while taken < most and size < BATCH_BYTES:
            record, size_hint = self._queue.popleft()
            taken += 1
            self._batch_hint += size_hint
            try:
                line = to_line(record() if callable(record) else record, self._withheld, self._paths)
            except Exception as error:  # noqa: BLE001  such as a MemoryError: the thread must live
                if not self.failed:
                    _say(logging.WARNING, "a record for `%s` could not be made: `%s`", self.path, type(error).__name__)
                self.failed += 1
            else:
                lines.append(line)
                size += len(line)

        self._batch = b"".join(lines)
        return taken

    def _append(self) -> OSError | None:
        done, error = 0, None
        try:
            # Known to a forked child, which closes its copy: a killed parent's lock would live as long as the copy.
            self._fd = _open(self.path)
            try:
                done, error = _append(self._fd, self._batch)
            finally:
                fd, self._fd = self._fd, -1
                os.close(fd)
        except OSError as raised:
            error = raised

        self.written += self._batch.count(b"\n", 0, done)
        self._batch = self._batch[done:]
        if not self._batch:
            self._queued -= self._batch_hint
            self._batch_hint = 0

        return error

    def _report(self, error: OSError | None) -> None:
        faults, self._faults = self._faults, self._faults + 1 if error else 0
        if error and not faults:
            waiting = self._batch.count(b"\n") + len(self._queue)
            why = error.strerror or error
            _say(logging.WARNING, "records cannot be written to `%s`: %s (%d waiting)", self.path, why, waiting)
        elif faults and not error:
            _say(logging.INFO, "records are written to `%s` again, after %d attempts", self.path, faults)

        if self.dropped and not self._said_dropped:
            self._said_dropped = True
            full = f"over {self._max_queued} bytes queued"
            _say(logging.WARNING, "records for `%s` are dropped: %s (%d so far)", self.path, full, self.dropped)


class _Flush(threading.Event):
    written = False


def _say(level: int, message: str, *values: object) -> None:
    # A handler of the host's that raises must not end the writer.
    with suppress(Exception):
        log.log(level, message, *values)


def _withheld(key: str, mode: str) -> frozenset[str]:
    if mode not in get_args(Arguments):
        raise ValueError(f"what stays of `{key}` must be full, hash or off, not `{mode}`")

    return frozenset({"full": (), "hash": (key,), "off": (key, *PAYLOADS[key])}[mode])


def parse_path(text: str) -> ErasePath:
    """
    *text*, segments between dots, as what `to_line` erases by. Raises ValueError for an empty segment.
    """
    segments = text.casefold().split(".")
    if not all(segments):
        raise ValueError(f"not a dotted path: `{text}`")

    # At the end of a path, everything below is all that is there.
    *above, last = segments
    return (*map(_segment, above), _segment("*" if last == "**" else last))


def _segment(text: str) -> Callable[[str], object] | None:
    if text == "**":
        return None

    return re.compile(translate(text)).match if any(sign in text for sign in "*?[") else text.__eq__


_READY: Final = frozenset({type(None), bool, int, float, str, dict, list, orjson.Fragment})
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def to_line(record: Record, withheld: frozenset[str] = frozenset(), paths: tuple[ErasePath, ...] = ()) -> bytes:
    """
    *record* as one line of JSON, without the keys *withheld* and what *paths* lead to; `erased` lists what went.

    Raises nothing for any value.
    """
    erased: list[str] = []
    shown = record
    if not withheld.isdisjoint(record):
        erased = [key for key in record if key in withheld]
        shown = {key: value for key, value in record.items() if key not in withheld}

    if paths or not _READY.issuperset(map(type, shown.values())):
        shown = {key: _opened(key, value) for key, value in shown.items()}

    if paths:
        _erase_paths(shown, paths, erased)

    if erased:
        shown = {**shown, "erased": [*shown.get("erased", ()), *dict.fromkeys(erased)]}

    try:
        line = orjson.dumps(shown, _simpler, _OPTIONS | orjson.OPT_APPEND_NEWLINE)
    except (TypeError, ValueError, RecursionError):
        pairs = (json.dumps(str(key)).encode() + b":" + _to_json(value) for key, value in shown.items())
        line = b"{" + b",".join(pairs) + b"}\n"

    # Between the tokens of ready JSON a newline is only white space, inside of them it cannot stand.
    return line if line.find(b"\n") == len(line) - 1 else line[:-1].replace(b"\n", b" ") + b"\n"


def _opened(key: str, value: Any) -> Any:
    if callable(value) and not isinstance(value, type):
        try:
            value = value()
        except Exception as error:  # noqa: BLE001  the rest of the record is still worth having
            return _name(error)

    if key in PAYLOADS and isinstance(value, bytes):
        try:
            orjson.loads(value)
            return orjson.Fragment(value)
        except ValueError:
            with suppress(ValueError, RecursionError):
                return json.loads(value)

    return value


def _to_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, _simpler, _OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(plain(value), separators=(",", ":")).encode()


def _text(data: bytes | bytearray | memoryview) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def _name(value: object) -> str:
    return f"<{type(value).__qualname__}>"


_SIMPLER: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((bytes, bytearray, memoryview), _text),
    ((set, frozenset), lambda value: sorted(value, key=repr)),
    (Mapping, dict),
    (Decimal, str),
    (os.PathLike, os.fspath),
)


def _simpler(value: Any) -> Any:
    """
    *value*, of a type that JSON does not know, as one that it does, one level deep.
    """
    for types, simpler in _SIMPLER:
        if isinstance(value, types):
            return simpler(value)

    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}

    return value.model_dump() if hasattr(type(value), "model_dump") else _name(value)


def _native(value: Any) -> Any:
    try:
        return orjson.loads(orjson.dumps(value, option=_OPTIONS))
    except (TypeError, ValueError):
        return _simpler(value)


_MAX_INT_BITS: Final = 14_280
"""About 4,299 digits: Python refuses to print more than 4,300 (`sys.int_info.default_max_str_digits`)."""
_SCALARS: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    str: lambda value: value,
    int: lambda value: value if value.bit_length() <= _MAX_INT_BITS else hex(value),
    float: lambda value: value if math.isfinite(value) else None,
}


def plain(value: Any, depth: int = 0, above: frozenset[int] = frozenset()) -> Any:
    """
    A copy of *value* that is only dicts with text keys, lists, text, finite numbers, booleans and None. Raises nothing.
    """
    if scalar := _SCALARS.get(type(value)):
        return scalar(value)

    if depth >= MAX_DEPTH or id(value) in above:
        return _name(value)

    above |= {id(value)}
    try:
        if isinstance(value, dict):
            return {_key(key): plain(each, depth + 1, above) for key, each in list(value.items())}

        if isinstance(value, list | tuple):
            return [plain(each, depth + 1, above) for each in list(value)]

        inside = json.loads(orjson.dumps(value)) if isinstance(value, orjson.Fragment) else _native(value)
        return plain(inside, depth + 1, above)
    except Exception:  # noqa: BLE001  whatever the object's own methods raise
        return _name(value)


def _key(key: Any) -> str:
    return key if type(key) is str else str(plain(key))


def _erase_paths(shown: Record, paths: tuple[ErasePath, ...], erased: list[str]) -> None:
    deep = [path[0] for path in paths if len(path) > 1]
    for key in list(shown):
        if any(matches is None or matches(key.casefold()) for matches in deep):
            # A copy: the original is the caller's, and ready JSON has to be opened.
            shown[key] = plain(shown[key])
            if key in PAYLOADS and isinstance(shown[key], str):
                del shown[key]
                erased.append(key)

    for path in paths:
        _erase(shown, path, "", erased)


def _erase(node: Any, path: ErasePath, at: str, erased: list[str]) -> None:
    matches, rest = path[0], path[1:]
    if matches is None:
        _erase(node, rest, at, erased)
        rest = path

    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        if matches is not None and not matches(str(key).casefold()):
            continue

        where = f"{at}.{key}" if at else str(key)
        if rest:
            _erase(value, rest, where, erased)
            continue

        erased.append(where)
        if isinstance(node, dict):
            del node[key]
        else:
            node[key] = None


def _open(path: Path) -> int:
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        regular = True
        path.parent.mkdir(parents=True, exist_ok=True)

    # Reading is for the last byte; a pipe opened for both would seem to have a reader.
    mode = os.O_RDWR if regular else os.O_WRONLY
    return os.open(path, mode | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)


def _append(fd: int, lines: bytes) -> tuple[int, OSError | None]:
    """
    Append *lines*; how many bytes of them are in the file for good (whole lines, unless it is a pipe), and the fault.
    """
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return _write(fd, lines)

    _lock(fd)
    try:
        before = os.fstat(fd)
        if not before.st_nlink:
            raise FileNotFoundError(errno.ENOENT, "deleted while it was open")

        torn = before.st_size > 0 and os.pread(fd, 1, before.st_size - 1) != b"\n"
        done, error = _write(fd, b"\n" + lines if torn else lines)
        if error is None:
            return len(lines), None

        whole = lines.rfind(b"\n", 0, max(done - torn, 0)) + 1
        # Only where nobody without the lock has written meanwhile. Else, or where it fails, the next write ends the line.
        with suppress(OSError):
            if os.fstat(fd).st_size == before.st_size + done:
                os.ftruncate(fd, before.st_size + (torn + whole if whole else 0))

        return whole, error
    finally:
        # Explicitly, since a child forked meanwhile holds a copy of the descriptor.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)


def _write(fd: int, data: bytes) -> tuple[int, OSError | None]:
    view, done = memoryview(data), 0
    while done < len(data):
        try:
            done += os.write(fd, view[done:])
        except BlockingIOError as error:
            full = select.poll()
            full.register(fd, select.POLLOUT)
            if not full.poll(WAIT_S * 1000):
                return done, error
        except OSError as error:
            return done, error

    return done, None


def _lock(fd: int) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise BlockingIOError(errno.EAGAIN, "locked by another process") from None

            time.sleep(0.001)
        except OSError as error:
            # A file system without locks: O_APPEND alone has to do.
            if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}:
                raise

            return
        else:
            return


_live: "weakref.WeakSet[JsonLines]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for sink in list(_live):
        sink.begin_in_child()


def _close_all() -> None:
    for sink in list(_live):
        sink.close()


def _flush_in_pool_process(sink: JsonLines) -> None:
    # Children of multiprocessing leave by os._exit, without atexit, but with the finalizers of multiprocessing.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, sink.flush, exitpriority=-100)


os.register_at_fork(after_in_child=_begin_in_child)
atexit.register(_close_all)


@dataclass(slots=True)
class ReadReport:
    """
    What `read` met: *lines* in all (blank ones too), and the numbers, from 1, of those that are *broken*.
    """

    lines: int = 0
    broken: list[int] = field(default_factory=list)


def read(path: str | os.PathLike[str], report: ReadReport | None = None) -> Iterator[Record]:
    """
    The records in the file *path*, in its order; lines that are no JSON object are skipped and noted in *report*.

    Integers of any length come back exact. Raises OSError where the file cannot be read.
    """
    report = report if report is not None else ReadReport()
    with Path(path).open("rb") as file:
        for line in file:
            report.lines += 1
            record = _parse(line)
            if isinstance(record, dict):
                yield record
            elif line.strip():
                report.broken.append(report.lines)


def by_session(records: Iterable[Record], key: str = "session_id") -> dict[Any, list[Record]]:
    """
    *records* by their session, each session's in the order of its own number `n`; those without one come last.
    """
    sessions: dict[Any, list[Record]] = {}
    for record in records:
        sessions.setdefault(record.get(key), []).append(record)

    for session in sessions.values():
        session.sort(key=lambda record: n if isinstance(n := record.get("n"), int) else math.inf)

    return sessions


_SAME_DIGITS: Final = bytes(ord("0") if chr(code) in "0123456789" else ord(" ") for code in range(256))


def _parse(line: bytes) -> Any:
    digits = line.translate(_SAME_DIGITS)
    # orjson makes floats of integers beyond 64 bits.
    beyond = b"0" * 20 in digits or (b"-9" in line and b"0" * 19 in digits)
    try:
        return json.loads(line) if beyond else orjson.loads(line)
    except ValueError:
        pass

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
