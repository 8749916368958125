import collections
import contextlib
import dataclasses
import datetime as dt
import errno
import fcntl
import itertools
import json
import logging
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import sinks
from guardrails.sinks import (
    JsonLines,
    MemorySink,
    OnRecord,
    ReadReport,
    Record,
    Sink,
    by_session,
    parse_path,
    read,
    to_line,
)


ROOT = Path(__file__).parents[1]
PATIENCE_S = 30
"""Longest wait for something that is to happen; only a failing test waits that long."""
NEVER_MS = 3_600_000
"""A flush interval that does not end within a test: only flush, close and exit write."""


class Heard(logging.Handler):
    """What the library's log said, and an event for each text that a test waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.again = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        if "are written" in record.getMessage():
            self.again.set()

    def about(self, text: str) -> list[str]:
        return [message for message in self.messages if text in message]


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    log = logging.getLogger("guardrails")
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(heard)
    yield heard
    log.removeHandler(heard)
    log.setLevel(level)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


@pytest.fixture
def hurried() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        # Shared, so that only who wants it alone is kept out.
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def together(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def python(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  our own script


def run(script: str, *arguments: object, code: int = 0) -> tuple[str, str]:
    process = python(script, *arguments)
    said, complained = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, complained.decode()
    return said.decode(), complained.decode()


def numbers(path: Path, key: str = "n") -> list[Any]:
    report = ReadReport()
    found = [record[key] for record in read(path, report)]
    assert report.broken == []
    return found


def written(record: Record, **settings: Any) -> Record:
    with tempfile.TemporaryDirectory() as folder:
        with JsonLines(Path(folder) / "one.jsonl", **settings) as sink:
            sink.put(record, 1)

        [line] = (Path(folder) / "one.jsonl").read_bytes().splitlines(keepends=True)
        assert line.endswith(b"}\n")
        [back] = read(Path(folder) / "one.jsonl")
        return back


def raises() -> Record:
    raise RuntimeError("password is hunter2")


# Every sink


@dataclasses.dataclass
class Case:
    sink: Sink
    records: Callable[[], list[Record]]


def memory_sink(path: Path) -> Case:
    sink = MemorySink()
    return Case(sink, lambda: sink.records)


def on_record(path: Path) -> Case:
    records: collections.deque[Record] = collections.deque()
    return Case(OnRecord(records.append), lambda: list(records))


def json_lines(path: Path) -> Case:
    return Case(JsonLines(path), lambda: list(read(path)))


@pytest.fixture(params=[memory_sink, on_record, json_lines])
def case(request: pytest.FixtureRequest, path: Path) -> Iterator[Case]:
    case = request.param(path)
    yield case
    case.sink.close()


def test_every_sink_follows_the_protocol(case: Case) -> None:
    assert isinstance(case.sink, Sink)


def test_records_come_out_in_the_order_they_were_put(case: Case) -> None:
    for n in range(1000):
        case.sink.put({"n": n, "tool": "search"}, 100)

    assert case.sink.flush()
    assert case.records() == [{"n": n, "tool": "search"} for n in range(1000)]
    assert (case.sink.written, case.sink.dropped, case.sink.failed) == (1000, 0, 0)


def test_a_record_may_be_made_late(case: Case) -> None:
    case.sink.put(lambda: {"n": 1}, 100)
    case.sink.put(raises, 100)
    case.sink.put({"n": 2}, 100)

    case.sink.flush()
    assert case.records() == [{"n": 1}, {"n": 2}]
    assert (case.sink.written, case.sink.dropped, case.sink.failed) == (2, 0, 1)


def test_a_flush_with_nothing_to_write_is_true(case: Case) -> None:
    assert case.sink.flush()
    assert case.sink.flush(timeout=0)


@pytest.mark.usefixtures("hurried")
def test_no_record_of_many_threads_is_lost_or_doubled(case: Case) -> None:
    def work(name: int) -> Callable[[], None]:
        def puts() -> None:
            for n in range(300):
                case.sink.put({"thread": name, "n": n}, 50)
                if n % 100 == name:
                    case.sink.flush()

        return puts

    together(*map(work, range(8)))

    case.sink.close()
    assert case.sink.written == 2400
    for name in range(8):
        assert [record["n"] for record in case.records() if record["thread"] == name] == list(range(300))


def test_what_is_put_after_close_is_dropped_and_counted(case: Case, heard: Heard) -> None:
    case.sink.put({"n": 1}, 10)
    case.sink.close()
    case.sink.put({"n": 2}, 10)
    case.sink.close()

    assert case.sink.flush()
    assert case.records() == [{"n": 1}]
    assert (case.sink.written, case.sink.dropped, case.sink.failed) == (1, 1, 0)
    assert heard.messages == []


def test_a_callable_that_raises_does_not_reach_the_call_and_is_said_once(heard: Heard) -> None:
    def refuse(record: Record) -> None:
        raise RuntimeError("password is hunter2")

    sink = OnRecord(refuse)
    sink.put({"n": 1})
    sink.put({"n": 2})

    assert (sink.written, sink.failed) == (0, 2)
    assert heard.messages == ["`on_record` raised `RuntimeError`, the record is lost"]


# The writer


def test_a_sink_without_records_touches_no_disk_and_starts_no_thread(path: Path) -> None:
    before = threading.active_count()
    with JsonLines(path) as sink:
        assert sink.flush()
        assert threading.active_count() == before

    assert not path.exists()


def test_a_record_is_written_without_anyone_asking(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=0) as sink:
        for n in range(200):
            turned_into_a_line = threading.Event()
            sink.put({"n": n, "x": turned_into_a_line.set}, 10)
            assert turned_into_a_line.wait(PATIENCE_S)

    assert numbers(path) == list(range(200))


def test_a_full_batch_does_not_wait_for_the_interval(path: Path) -> None:
    turned_into_a_line = threading.Event()
    with JsonLines(path, flush_interval_ms=NEVER_MS) as sink:
        sink.put({"n": 1, "x": turned_into_a_line.set}, 10)
        sink.put({"n": 2}, sinks.BATCH_BYTES)
        assert turned_into_a_line.wait(PATIENCE_S)


def test_a_flush_does_not_wait_for_the_interval(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=NEVER_MS) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush(timeout=PATIENCE_S)
        assert numbers(path) == [1]


def test_a_flush_from_the_writers_own_thread_is_false_and_does_not_hang(path: Path) -> None:
    with JsonLines(path) as sink:
        sink.put({"flushed": sink.flush}, 10)

    assert list(read(path)) == [{"flushed": False}]


def test_a_relative_path_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with JsonLines("records.jsonl") as sink:
        monkeypatch.chdir(tmp_path / "elsewhere")
        sink.put({"n": 1}, 10)

    assert numbers(tmp_path / "records.jsonl") == [1]


def test_a_new_file_is_its_owners_only_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").touch(mode=0o640)
    for name in ("new.jsonl", "old.jsonl"):
        with JsonLines(tmp_path / name) as sink:
            sink.put({"n": 1}, 10)

    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "old.jsonl").stat().st_mode & 0o777 == 0o640


def test_beyond_the_bound_records_are_dropped_counted_and_said_once(path: Path, heard: Heard) -> None:
    with JsonLines(path, max_queued_bytes=1000, flush_interval_ms=0) as sink:
        with locked(path):
            for n in range(30):
                sink.put({"n": n}, 100)

            assert sink.dropped == 20

        assert sink.flush()
        assert sink.written == 10
        sink.put({"n": 30}, 1000)
        sink.put({"n": 31}, 1001)

    assert numbers(path) == [*range(10), 30]
    assert sink.dropped == 21
    assert len(heard.about("are dropped: over 1000 bytes queued")) == 1


def test_an_endless_interval_is_an_interval(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=math.inf) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush()


def test_what_was_written_no_longer_counts_against_the_bound(path: Path) -> None:
    last = threading.Event()

    def then(n: int) -> Callable[[], None]:
        # The queue is never empty when a batch is done.
        return lambda: sink.put({"n": n, "next": then(n + 1)}, 100) if n < 100 else last.set()

    with JsonLines(path, max_queued_bytes=1000, flush_interval_ms=0) as sink:
        sink.put({"n": 0, "next": then(1)}, 100)
        assert last.wait(PATIENCE_S)

    assert numbers(path) == list(range(100))
    assert sink.dropped == 0


@pytest.mark.usefixtures("hurried")
def test_the_bound_holds_against_many_threads(path: Path) -> None:
    def puts() -> None:
        for n in range(500):
            sink.put({"n": n}, 100)

    with JsonLines(path, max_queued_bytes=100_000, flush_interval_ms=0) as sink:
        with locked(path):
            together(*[puts] * 8)
            accepted = 4000 - sink.dropped

        # One record per thread is what a lost update could cost; none is, on CPython with its lock.
        assert 1000 <= accepted <= 1008

    assert sink.written == accepted == len(numbers(path))


def test_without_a_thread_to_be_had_flush_and_close_write(path: Path) -> None:
    sink = JsonLines(path)
    usual = threading.stack_size(1 << 46)
    try:
        sink.put({"n": 1}, 10)
        assert sink.flush()
        sink.put({"n": 2}, 10)
        sink.close()
    finally:
        threading.stack_size(usual)

    assert numbers(path) == [1, 2]


def test_a_log_handler_that_raises_does_not_end_the_writer(tmp_path: Path) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError

    log = logging.getLogger("guardrails")
    broken = Broken()
    log.addHandler(broken)
    try:
        with JsonLines(tmp_path) as sink:
            sink.put({"n": 1}, 10)
            assert not sink.flush()
            assert not sink.flush()
    finally:
        log.removeHandler(broken)

    assert sink.failed == 1


# Any value


@dataclasses.dataclass(slots=True)
class Hotel:
    name: str


class Model:
    def model_dump(self) -> dict[str, object]:
        return {"city": "Shibuya", "tags": {"a"}}


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("password is hunter2")


class Sly(dict[str, object]):
    def items(self) -> Any:
        raise RuntimeError


def nested(depth: int, value: Any = 1) -> Any:
    for _ in range(depth):
        value = [value]
    return value


CYCLE: dict[str, Any] = {"x": 1}
CYCLE["self"] = CYCLE
CYCLE["again"] = [CYCLE, CYCLE]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (b"text", "text"),
        (bytearray(b"\xff\x00"), "/wA="),
        (memoryview(b"view"), "view"),
        ({"b", "a"}, ["a", "b"]),
        ((1, (2,)), [1, [2]]),
        (math.nan, None),
        (-math.inf, None),
        ([math.nan, 2**70], [None, 2**70]),
        (2**64, 2**64),
        (-(2**63) - 1, -(2**63) - 1),
        (10**5000, hex(10**5000)),
        ("lone \ud800", "lone \ud800"),
        ({"\udfff": [b"x"]}, {"\udfff": ["x"]}),
        ({(1, 2): 1, b"k": 2}, {"[1, 2]": 1, "k": 2}),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        (Decimal("1.10"), "1.10"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00"),
        ([2**70, dt.date(2026, 1, 2)], [2**70, "2026-01-02"]),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Hotel("Ryokan"), {"name": "Ryokan"}),
        ([Hotel("\ud800")], [{"name": "\ud800"}]),
        (Model(), {"city": "Shibuya", "tags": ["a"]}),
        (collections.ChainMap({"a": 1}), {"a": 1}),
        (Odd(), "<Odd>"),
        ({"deep": [Odd(), 2**70]}, {"deep": ["<Odd>", 2**70]}),
        (Sly(a=2**70), "<Sly>"),
        (iter([1]), "<list_iterator>"),
        (dict, "<type>"),
        (CYCLE, {"x": 1, "self": "<dict>", "again": ["<dict>", "<dict>"]}),
        (lambda: {"late": 1}, {"late": 1}),
        (lambda: 2**70, 2**70),
        (raises, "<RuntimeError>"),
        (len, "<TypeError>"),
        (orjson.Fragment(b'{"a":\n [1,\n2]}'), {"a": [1, 2]}),
        ([orjson.Fragment(b'{"a":18446744073709551616}')], [{"a": 2**64}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_value_costs_the_record(value: object, line: object) -> None:
    assert written({"n": 1, "value": value, "last": "x"}) == {"n": 1, "value": line, "last": "x"}


def test_what_is_too_deep_is_cut_and_its_neighbours_stay() -> None:
    record = written({"n": 1, "deep": nested(2000), "text": "x"})

    depth, value = 0, record.pop("deep")
    while isinstance(value, list):
        depth, [value] = depth + 1, value

    assert (depth, value) == (sinks.MAX_DEPTH, "<list>")
    assert record == {"n": 1, "text": "x"}


def test_a_function_in_the_arguments_is_not_called() -> None:
    called: list[int] = []
    record = written({"arguments": {"callback": lambda: called.append(1)}, "late": lambda: 1})

    assert record == {"arguments": {"callback": "<function>"}, "late": 1}
    assert called == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (b'{"city":"Shibuya"}', {"city": "Shibuya"}),
        (lambda: b'{"city":"Shibuya"}', {"city": "Shibuya"}),
        (orjson.Fragment(b'{"city":"Shibuya"}'), {"city": "Shibuya"}),
        (b"{not json", "{not json"),
        (b"\xff", "/w=="),
    ],
)
def test_arguments_may_be_json_already(arguments: object, line: object) -> None:
    assert written({"arguments": arguments}) == {"arguments": line}


TEXT = st.text(st.characters(exclude_categories=()))
JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ANYTHING = st.recursive(
    JSON_LIKE | st.binary() | st.decimals() | st.complex_numbers() | st.datetimes() | st.floats() | st.builds(Odd),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.binary() | TEXT | st.tuples(TEXT) | st.floats() | st.integers(), inner, max_size=4)
        | st.builds(Hotel, inner)
    ),
    max_leaves=12,
)


def paired(value: Any) -> Any:
    """As JSON has it: two surrogates in a row are one character."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, list):
        return [paired(each) for each in value]
    return {key: paired(each) for key, each in value.items()} if isinstance(value, dict) else value


@given(JSON_LIKE)
def test_json_comes_back_as_it_was(value: object) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(to_line({"n": 1, "value": value}))
        file.flush()
        assert list(read(file.name)) == [{"n": 1, "value": paired(value)}]


@given(ANYTHING)
def test_anything_makes_one_whole_line(value: object) -> None:
    line = to_line({"n": 1, "value": value, "arguments": value}, paths=(parse_path("arguments.**.x*"),))

    assert line.count(b"\n") == 1
    assert line.endswith(b"}\n")
    assert json.loads(line)["n"] == 1


# Redaction


ARGUMENTS = {
    "city": "Shibuya",
    "password": "hunter2",
    "headers": {"Authorization": "Bearer x", "accept": "text"},
    "users": [{"name": "a", "token": "t0"}, {"name": "b", "token": "t1"}],
}


def without(*keys: str) -> dict[str, object]:
    return {key: value for key, value in ARGUMENTS.items() if key not in keys}


@pytest.mark.parametrize(
    ("paths", "arguments", "erased"),
    [
        (["arguments.password"], without("password"), ["arguments.password"]),
        (["arguments.PASS*"], without("password"), ["arguments.password"]),
        (["arguments.pass"], ARGUMENTS, None),
        (["password"], ARGUMENTS, None),
        (
            ["arguments.headers.*"],
            {**ARGUMENTS, "headers": {}},
            ["arguments.headers.Authorization", "arguments.headers.accept"],
        ),
        (
            ["arguments.headers.authorization"],
            {**ARGUMENTS, "headers": {"accept": "text"}},
            ["arguments.headers.Authorization"],
        ),
        (
            ["arguments.users.*.token", "arguments.password"],
            {**without("password"), "users": [{"name": "a"}, {"name": "b"}]},
            ["arguments.users.0.token", "arguments.users.1.token", "arguments.password"],
        ),
        (["arguments.*.token"], ARGUMENTS, None),
        (["arguments.users.1"], {**ARGUMENTS, "users": [{"name": "a", "token": "t0"}, None]}, ["arguments.users.1"]),
        (
            ["arguments.**.token"],
            {**ARGUMENTS, "users": [{"name": "a"}, {"name": "b"}]},
            ["arguments.users.0.token", "arguments.users.1.token"],
        ),
        (
            ["**.token", "**.token"],
            {**ARGUMENTS, "users": [{"name": "a"}, {"name": "b"}]},
            ["arguments.users.0.token", "arguments.users.1.token"],
        ),
        (["arguments.**"], {}, [f"arguments.{key}" for key in ARGUMENTS]),
        (["arguments.*", "arguments.password"], {}, [f"arguments.{key}" for key in ARGUMENTS]),
        (["arguments"], None, ["arguments"]),
        (["arg*.city.*"], ARGUMENTS, None),
    ],
)
@pytest.mark.parametrize("ready", [False, True], ids=["dict", "bytes"])
def test_redaction_erases_by_path_and_says_what(
    paths: list[str], arguments: object, erased: list[str] | None, ready: bool
) -> None:
    before = orjson.dumps(ARGUMENTS)
    record = written({"n": 1, "tool": "t", "arguments": before if ready else ARGUMENTS}, redact=tuple(paths))

    assert record.get("arguments") == arguments
    assert record.get("erased") == erased
    assert (record["n"], record["tool"]) == (1, "t")
    assert orjson.dumps(ARGUMENTS) == before


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"password": "hunter2"', None),
        (b'{"password": "hunter2"', None),
        (orjson.Fragment(b'{"password": "hunter2"'), None),
        (lambda: "password=hunter2", None),
        (orjson.Fragment(b"[" * 150 + b'{"password":"hunter2"}' + b"]" * 150), nested(150, {})),
        ([orjson.Fragment(b"[" * 3000 + b'"hunter2"' + b"]" * 3000), 2**70], ...),
        (nested(3000, "hunter2"), ...),
        (orjson.Fragment(b'{"n":18446744073709551616,"password":"hunter2"}'), {"n": 2**64}),
        (Hotel({"password": "hunter2"}), {"name": {}}),  # type: ignore[arg-type]
        (b'{"a":"\\ud800","password":"hunter2"}', {"a": "\ud800"}),
        ([{"b": b"\xff", "password": "hunter2"}], [{"b": "/w=="}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_looked_into_is_erased_whole(arguments: object, kept: object) -> None:
    record = written({"n": 1, "arguments": arguments}, redact=("arguments.**.password",))

    assert "hunter2" not in str(record)
    if kept is None:
        assert record == {"n": 1, "erased": ["arguments"]}
    elif kept is not ...:
        assert record["arguments"] == kept


def test_a_record_that_lists_erasures_already_keeps_them() -> None:
    record = written({"n": 1, "arguments": {"a": 1}, "erased": ["results"]}, redact=("arguments.a",))
    assert record["erased"] == ["results", "arguments.a"]


def test_one_path_may_be_bare_text() -> None:
    assert written({"arguments": {"a": 1, "b": 2}}, redact="arguments.a")["arguments"] == {"b": 2}


CALL = {
    "n": 1,
    "sig": -5,
    "near_sig": 6,
    "arguments": {"a": 1},
    "result": "text",
    "result_hash": 7,
    "result_hash_masked": 8,
    "result_bytes": 4,
}


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ({}, ["result"]),
        ({"results": "full"}, []),
        ({"arguments": "hash"}, ["arguments", "result"]),
        ({"arguments": "off", "results": "full"}, ["sig", "near_sig", "arguments"]),
        ({"results": "off"}, ["result", "result_hash", "result_hash_masked"]),
        ({"arguments": "hash", "redact": ("arguments.a",)}, ["arguments", "result"]),
    ],
)
def test_arguments_and_results_may_be_left_out_but_for_their_hashes(settings: dict[str, Any], gone: list[str]) -> None:
    record = written(CALL, **settings)

    assert record.pop("erased", []) == gone
    assert record == {key: value for key, value in CALL.items() if key not in gone}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arguments": "none"}, "what stays of `arguments` must be full, hash or off, not `none`"),
        ({"results": None}, "what stays of `result` must be full, hash or off, not `None`"),
        ({"redact": ("arguments..a",)}, "not a dotted path: `arguments..a`"),
        ({"redact": ("",)}, "not a dotted path: ``"),
    ],
)
def test_a_setting_that_is_not_valid_is_refused(path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace(".", r"\.") + "$"):
        JsonLines(path, **settings)


# Faults


@contextlib.contextmanager
def a_directory(folder: Path) -> Iterator[Path]:
    yield folder


@contextlib.contextmanager
def a_full_disk(folder: Path) -> Iterator[Path]:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    yield Path("/dev/full")


@contextlib.contextmanager
def a_fifo_nobody_reads(folder: Path) -> Iterator[Path]:
    os.mkfifo(folder / "fifo")
    yield folder / "fifo"


@contextlib.contextmanager
def a_folder_that_became_a_file(folder: Path) -> Iterator[Path]:
    (folder / "file").touch()
    yield folder / "file" / "records.jsonl"


@contextlib.contextmanager
def a_read_only_file(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "records.jsonl").touch(mode=0o444)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield Path(name) / "records.jsonl"
        finally:
            os.seteuid(user)


@contextlib.contextmanager
def a_file_locked_by_another(folder: Path) -> Iterator[Path]:
    with locked(folder / "records.jsonl"):
        yield folder / "records.jsonl"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (a_directory, "Is a directory"),
        (a_full_disk, "No space left on device"),
        (a_fifo_nobody_reads, "No such device or address"),
        (a_folder_that_became_a_file, "Not a directory"),
        (a_read_only_file, "Permission denied"),
        (a_file_locked_by_another, "locked by another process"),
    ],
)
def test_a_fault_is_counted_and_said_once_and_the_caller_goes_on(
    fault: Callable[[Path], contextlib.AbstractContextManager[Path]],
    why: str,
    tmp_path: Path,
    heard: Heard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sinks, "WAIT_S", 0.01)
    with fault(tmp_path) as path:
        sink = JsonLines(path, max_queued_bytes=1000, flush_interval_ms=NEVER_MS)
        for n in range(7):
            sink.put({"n": n}, 100)
        assert not sink.flush()
        assert not sink.flush()
        for n in range(7, 12):
            sink.put({"n": n}, 100)
        assert not sink.flush()
        sink.close()

    assert (sink.written, sink.dropped, sink.failed) == (0, 2, 10)
    assert heard.messages == [
        f"records cannot be written to `{path}`: {why} (7 waiting)",
        f"records for `{path}` are dropped: over 1000 bytes queued (2 so far)",
        f"10 records for `{path}` could not be written and are lost",
    ]


@pytest.mark.parametrize("interval_ms", [1, NEVER_MS])
def test_the_writer_tries_again_by_itself_and_says_when_the_fault_is_over(
    path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch, interval_ms: int
) -> None:
    monkeypatch.setattr(sinks, "MAX_BACKOFF_S", 0.01)
    path.mkdir()
    with JsonLines(path, flush_interval_ms=interval_ms) as sink:
        sink.put({"n": 1}, 10)
        assert not sink.flush()
        sink.put({"n": 2}, 10)
        path.rmdir()
        assert heard.again.wait(PATIENCE_S)
        assert sink.flush()
        assert numbers(path) == [1, 2]

    assert (sink.written, sink.failed) == (2, 0)
    assert len(heard.about("cannot be written")) == len(heard.about("are written")) == 1


def test_records_that_keep_coming_do_not_hasten_the_next_try(tmp_path: Path) -> None:
    with JsonLines(tmp_path, flush_interval_ms=NEVER_MS) as sink:
        sink.put({"n": 1}, sinks.BATCH_BYTES)
        assert not sink.flush()
        for n in range(1000):
            sink.put({"n": n}, 10_000)

        # The full batch's, the flush's, and one that was under way.
        assert 1 <= sink._faults <= 3


def test_a_folder_deleted_while_running_is_made_again(tmp_path: Path, heard: Heard) -> None:
    path = tmp_path / "a" / "b" / "records.jsonl"
    with JsonLines(path) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush()
        path.unlink()
        path.parent.rmdir()
        path.parent.parent.rmdir()
        sink.put({"n": 2}, 10)
        assert sink.flush()

    assert numbers(path) == [2]
    assert heard.messages == []


def test_a_file_deleted_between_opening_and_locking_takes_no_records_with_it(path: Path) -> None:
    with JsonLines(path, flush_interval_ms=0) as sink:
        with locked(path):
            sink.put({"n": 1}, 10)
            while sink._fd < 0:
                pass
            path.unlink()

        while not sink.flush():
            pass

    assert numbers(path) == [1]


def test_a_file_moved_away_by_rotation_is_left_alone(path: Path) -> None:
    with JsonLines(path) as sink:
        sink.put({"n": 1}, 10)
        assert sink.flush()
        path.rename(path.with_suffix(".1"))
        sink.put({"n": 2}, 10)

    assert (numbers(path.with_suffix(".1")), numbers(path)) == ([1], [2])


def test_a_torn_line_of_a_killed_process_is_ended_before_the_next(path: Path) -> None:
    path.write_bytes(b'{"n":0}\n{"n":1,"to')
    with JsonLines(path) as sink:
        sink.put({"n": 2}, 10)

    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [0, 2]
    assert report.broken == [2]


FILE_SIZE_LIMIT = """
import resource, sys
from guardrails.sinks import JsonLines, read

path = sys.argv[1]
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
sink = JsonLines(path)
for n in range(20):
    sink.put({"n": n, "text": "x" * 80}, 100)
assert not sink.flush()
assert not sink.flush()
data = open(path, "rb").read()
assert data.endswith(b"}\\n") and len(data) <= 1000, data[-80:]
assert sink.written == data.count(b"\\n") == len(list(read(path))) > 5
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert sink.flush()
sink.close()
print(sink.written, sink.dropped, sink.failed)
"""


def test_a_disk_that_fills_up_within_a_line_leaves_whole_lines(path: Path) -> None:
    said, complained = run(FILE_SIZE_LIMIT, path)

    kept = numbers(path)
    assert kept == list(range(len(kept)))
    assert said.split() == [str(len(kept)), "0", str(20 - len(kept))]
    assert complained.count("File too large") == 1


def test_when_there_is_room_again_the_rest_is_written(path: Path) -> None:
    said, _ = run(FILE_SIZE_LIMIT, path, "room again")

    assert numbers(path) == list(range(20))
    assert said.split() == ["20", "0", "0"]


def test_a_pipe_that_is_full_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "WAIT_S", 0.01)
    os.mkfifo(tmp_path / "fifo")
    # Open for both, the pipe has a reader that sees no end.
    end = os.open(tmp_path / "fifo", os.O_RDWR)
    data = bytearray()

    def reads() -> None:
        while data.count(b"\n") < 300:
            data.extend(os.read(end, 4096))

    with JsonLines(tmp_path / "fifo", flush_interval_ms=NEVER_MS) as sink:
        for n in range(300):
            sink.put({"n": n, "text": "x" * 1000}, 10)
        assert not sink.flush()
        assert 0 < sink.written < 300
        reader = threading.Thread(target=reads)
        reader.start()
        while not sink.flush():
            pass
        reader.join()

    os.close(end)
    assert [json.loads(line)["n"] for line in data.splitlines()] == list(range(300))
    assert (sink.written, sink.failed) == (300, 0)


def test_a_file_system_without_locks_is_written_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with JsonLines(path) as sink:
        sink.put({"n": 1}, 10)

    assert numbers(path) == [1]


def test_a_file_that_cannot_be_locked_for_another_reason_is_a_fault(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: object, operation: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with JsonLines(path) as sink:
        sink.put({"n": 1}, 10)
        assert not sink.flush()

    assert sink.failed == 1


# Processes


def test_four_processes_write_one_file_and_every_line_is_whole(path: Path) -> None:
    script = """
import sys
from guardrails.sinks import JsonLines

with JsonLines(sys.argv[1], flush_interval_ms=1) as sink:
    for n in range(1000):
        sink.put({"process": sys.argv[2], "n": n, "text": "x" * (n % 300)}, 300)
"""
    processes = [python(script, path, name) for name in "abcd"]
    for process in processes:
        _, complained = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, complained) == (0, b"")

    report = ReadReport()
    records = list(read(path, report))
    assert (report.lines, report.broken) == (4000, [])
    for name in "abcd":
        assert [record["n"] for record in records if record["process"] == name] == list(range(1000))


FORK = """
import os, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")
sink = JsonLines(sys.argv[1], flush_interval_ms=3_600_000)
for n in range(10):
    sink.put({"who": "parent", "n": n}, 10)
if (child := os.fork()) == 0:
    assert sink.flush()
    assert (sink.written, sink.dropped, sink.failed) == (0, 0, 0)
    for n in range(5):
        sink.put({"who": "child", "n": n}, 10)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for n in range(10, 20):
    sink.put({"who": "parent", "n": n}, 10)
"""


def test_a_forked_child_writes_its_own_records_and_not_the_parents(path: Path) -> None:
    run(FORK, path)

    records = list(read(path))
    assert [record["n"] for record in records if record["who"] == "child"] == list(range(5))
    assert [record["n"] for record in records if record["who"] == "parent"] == list(range(20))


def test_children_forked_while_the_file_is_locked_do_not_keep_it_locked(path: Path) -> None:
    script = """
import os, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")
sink = JsonLines(sys.argv[1], flush_interval_ms=0)
stay, go = os.pipe()
for n in range(15):
    for _ in range(50):
        sink.put({"n": n, "text": "x" * 10_000}, 10)
    if os.fork() == 0:
        os.close(go)
        os.read(stay, 1)
        os._exit(0)
sink.close()
assert (sink.written, sink.failed) == (750, 0)
"""
    assert run(script, path) == ("", "")
    assert len(numbers(path)) == 750


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
def test_a_forked_child_closes_its_copy_of_the_file(path: Path) -> None:
    script = """
import fcntl, os, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")
sink = JsonLines(sys.argv[1], flush_interval_ms=0)
with open(sys.argv[1], "ab") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    sink.put({"n": 1}, 10)
    while sink._fd < 0:
        pass
    if os.fork() == 0:
        file.close()
        links = ["/proc/self/fd/" + name for name in os.listdir("/proc/self/fd")]
        os._exit(sum(os.path.realpath(link) == sys.argv[1] for link in links))
    assert os.wait()[1] == 0
"""
    run(script, path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_multiprocessing_loses_nothing(path: Path, method: str) -> None:
    script = """
import multiprocessing, sys, warnings
from guardrails.sinks import JsonLines

warnings.simplefilter("ignore")

def child(path):
    sink = JsonLines(path, flush_interval_ms=3_600_000)
    sink.put({"who": "child"}, 10)

if __name__ == "__main__":
    sink = JsonLines(sys.argv[1], flush_interval_ms=3_600_000)
    sink.put({"who": "parent"}, 10)
    process = multiprocessing.get_context(sys.argv[2]).Process(target=child, args=sys.argv[1:2])
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""
    # A spawned child imports the main module again, so that has to be a file.
    program = path.with_suffix(".py")
    program.write_text(script)
    run("import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')", program, path, method)

    assert sorted(numbers(path, "who")) == ["child", "parent"]


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise RuntimeError", 1),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
        ("threading.Thread(target=later).start()", 0),
        ("atexit.register(put, range(10, 20))", 0),
    ],
    ids=["end", "exit", "exception", "interrupt", "thread", "atexit"],
)
def test_a_clean_exit_loses_nothing(path: Path, ending: str, code: int) -> None:
    script = f"""
import atexit, os, signal, sys, threading
from guardrails.sinks import JsonLines

def put(numbers):
    for n in numbers:
        sink.put({{"n": n}}, 10)

def later():
    threading.main_thread().join()
    put(range(10, 20))

sink = JsonLines(sys.argv[1], flush_interval_ms=3_600_000)
put(range(10))
{ending}
"""
    run(script, path, code=code)

    assert numbers(path) == list(range(20 if "thread" in ending or "atexit" in ending else 10))


ECHO = """
import os, sys
from guardrails.sinks import JsonLines

sink = JsonLines(sys.argv[1], flush_interval_ms=20)
for n, _ in enumerate(iter(lambda: os.read(0, 1), b"")):
    sink.put({"n": n, "text": "x" * 500}, 500)
    os.write(1, b".")
"""


def test_a_kill_takes_no_more_than_the_last_interval(path: Path) -> None:
    # The interval is 20 ms; the rest is for a machine that is busy with something else.
    margin_s = 0.5
    process = python(ECHO, path)
    assert process.stdin is not None
    assert process.stdout is not None
    acknowledged: list[float] = []
    while not acknowledged or acknowledged[-1] - acknowledged[0] < 1.6 * margin_s:
        os.write(process.stdin.fileno(), b".")
        assert os.read(process.stdout.fileno(), 1) == b"."
        acknowledged.append(time.monotonic())

    killed = time.monotonic()
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    with JsonLines(path) as sink:
        sink.put({"n": -1}, 10)

    report = ReadReport()
    kept = [record["n"] for record in read(path, report)]
    safe = sum(at < killed - margin_s for at in acknowledged)
    assert kept[-1] == -1
    assert kept[:-1] == list(range(len(kept) - 1))
    assert len(kept) - 1 >= safe > 10
    assert report.broken in ([], [report.lines - 1])


# Reading


def test_broken_lines_are_skipped_and_noted(path: Path) -> None:
    path.write_bytes(
        b'{"n":1}\n\n[2]\n{"n":3\n\x00\x00\n{"n":4,"x":"\\ud800"}\n"text"\n{"n":5}\n' + b"[" * 5000 + b'\n{"n":6}'
    )

    report = ReadReport()
    assert [record["n"] for record in read(path, report)] == [1, 4, 5, 6]
    assert report == ReadReport(lines=10, broken=[3, 4, 5, 7, 9])


def test_reading_streams(path: Path) -> None:
    path.write_bytes(b'{"n":1}\n' * 100_000)
    report = ReadReport()
    assert len(list(itertools.islice(read(path, report), 3))) == 3
    assert report.lines == 3


def test_reading_what_is_not_there_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read(path))


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**30, -(2**63), -(2**63) - 1, -(10**19), 10**19])
def test_integers_of_any_length_come_back_exact(path: Path, number: int) -> None:
    path.write_text(json.dumps({"sig": -5123456789012345678, "number": number}))
    assert list(read(path)) == [{"sig": -5123456789012345678, "number": number}]


def test_records_by_session_are_in_the_order_of_their_number() -> None:
    records: list[Record] = [
        {"session_id": "a", "n": 2},
        {"session_id": "b", "n": 1},
        {"session_id": "a"},
        {"session_id": "a", "n": 1},
        {"n": 1},
    ]
    assert by_session(records) == {
        "a": [{"session_id": "a", "n": 1}, {"session_id": "a", "n": 2}, {"session_id": "a"}],
        "b": [{"session_id": "b", "n": 1}],
        None: [{"n": 1}],
    }
