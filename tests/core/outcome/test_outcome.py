"""
What an executor did, in the library's words.
"""

import asyncio
import itertools
import subprocess
import sys

from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.outcome import MAX_COST, FailureRule, ResultClassifier, outcome_of, outcome_of_async
from guardrails.core.values.types import ERROR_TYPES, Failed, Outcome, Success


NOW = 1_700_000_000_000
SECRET = "sk-" + "proj-" + "k9" * 12


@pytest.mark.parametrize(
    "value",
    [
        *("text", "", {"a": [1]}, {}, [], [{}], None, 0, 1.5, False, (1, 2), {"error": ""}, {"isError": False}),
        pytest.param(object(), id="object"),
    ],
    ids=repr,
)
def test_a_value_is_a_success_and_stays_the_same_object(value: Any) -> None:
    outcome = outcome_of(value)

    assert outcome == Outcome(value)
    assert outcome.value is value


@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: Success(value, 0.01, 5)])
def test_an_envelope_of_the_tools_own_passes(wrap: Callable[[Any], Any]) -> None:
    envelope = Envelope.error("conflict", "taken")
    outcome = outcome_of(wrap(envelope), classifier=ResultClassifier(status_field="status"))

    assert outcome.value is envelope
    assert outcome.error_type is None


@pytest.mark.parametrize(
    ("cost_usd", "cost"),
    [
        (0.1, 100_000),
        ("0.25", 250_000),
        (Decimal("1.000001"), 1_000_001),
        (0, 0),
        (None, None),
        (-1, None),
        (float("nan"), None),
        ("much", None),
        ([], None),
        (float("inf"), MAX_COST),
        (Decimal("1e999999"), MAX_COST),
        (1e300, MAX_COST),
    ],
)
def test_an_actual_cost_is_integer_micro_dollars_and_a_senseless_one_keeps_the_estimate(
    cost_usd: Any, cost: int | None
) -> None:
    assert outcome_of(Success("v", cost_usd)).cost == cost


@pytest.mark.parametrize(("tokens", "counted"), [(7, 7), (0, 0), (None, None), (-1, None), (1.5, None), ("7", None)])
def test_actual_tokens_are_a_count(tokens: Any, counted: int | None) -> None:
    assert outcome_of(Success("v", tokens=tokens)).tokens == counted


def test_a_failure_costs_too() -> None:
    outcome = outcome_of(Success({"status": 500}, 0.5, 9), classifier=ResultClassifier(status_field="status"))

    assert (outcome.error_type, outcome.cost, outcome.tokens) == ("server_error", 500_000, 9)


@pytest.mark.parametrize(
    ("failed", "outcome"),
    [
        (Failed("no such file: a.txt"), Outcome(None, "not_found", "no such file: a.txt")),
        (Failed("HTTP 429, retry after 3 s"), Outcome(None, "rate_limit", "HTTP 429, retry after 3 s", 429, 3_000)),
        (Failed("it went wrong"), Outcome(None, "other", "it went wrong")),
        (Failed("it went wrong", error_type="auth"), Outcome(None, "auth", "it went wrong")),
        (Failed("gone", error_type="no kind of ours"), Outcome(None, "other", "gone")),  # type: ignore[arg-type]
        (Failed(" "), Outcome(None, "other", "the tool reported an error and said nothing of it")),
        (Failed("half", value={"ok": True}), Outcome({"ok": True}, "other", "half")),
        (
            Failed("", value={"message": "no such file"}),
            Outcome({"message": "no such file"}, "not_found", "no such file"),
        ),
        (Failed("half", value="all of it"), Outcome("all of it", "other", "half")),
        (Failed("no", cost_usd=0.5, tokens=9), Outcome(None, "other", "no", cost=500_000, tokens=9)),
    ],
    ids=repr,
)
def test_what_a_host_says_failed_is_a_failure_whatever_its_value_is(failed: Failed, outcome: Outcome) -> None:
    assert outcome_of(failed, now_ms=NOW) == outcome
    assert outcome_of(failed, now_ms=NOW, classifier=ResultClassifier(status_field="ok")) == outcome


def test_what_is_declared_of_a_tool_tells_the_kind_of_what_its_host_says_failed() -> None:
    rules = ResultClassifier(error_when=(FailureRule(field="", matches="nope", error_type="permission"),))
    assert outcome_of(Failed("nope, not today"), classifier=rules).error_type == "permission"
    assert outcome_of(Failed("nope, not today", error_type="auth"), classifier=rules).error_type == "auth"
    assert outcome_of(Failed("what?"), classifier=rules).error_type == "other"


def test_what_a_host_says_failed_is_redacted_and_never_a_success_by_an_envelope_in_it() -> None:
    assert "hunter2" not in outcome_of(Failed("password=hunter2 is wrong")).error_message
    inside = outcome_of(Failed("no", value=Envelope("success", "fine")))
    assert (inside.error_type, inside.error_message) == ("other", "no")
    assert not isinstance(inside.value, Envelope)


def test_a2_an_empty_success_and_a_failure_never_share_a_shape() -> None:
    empty, failed = outcome_of([]), outcome_of(ConnectionError("gone"))

    assert (empty.value, empty.error_type) == ([], None)
    assert (failed.value, failed.error_type) == (None, "connection")


def test_a3_a_refusal_of_a_service_says_kind_status_and_wait() -> None:
    request = httpx2.Request("GET", "https://example.com")
    answer = httpx2.Response(429, headers={"Retry-After": "Tue, 14 Nov 2023 22:13:30 GMT"}, request=request)

    assert outcome_of(httpx2.HTTPStatusError("busy now", request=request, response=answer), now_ms=NOW) == Outcome(
        None, "rate_limit", "busy now", 429, 10_000
    )


@pytest.mark.parametrize(
    ("exc", "message"),
    [
        (ValueError("check_out must be after check_in"), "check_out must be after check_in"),
        (KeyError("city"), "KeyError: 'city'"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (TimeoutError(), "TimeoutError"),
        (ConnectionError("  "), "ConnectionError"),
        (RuntimeError("it broke"), "RuntimeError: it broke"),
        (SystemExit(2), "SystemExit: 2"),
        (ExceptionGroup("several failed", [ConnectionError("host a is gone")]), None),
    ],
    ids=repr,
)
def test_d4_an_exception_says_what_happened(exc: BaseException, message: str | None) -> None:
    expected = message or "several failed (1 sub-exception): host a is gone"

    assert outcome_of(exc).error_message == expected


def test_a_wrapper_tells_what_it_wraps() -> None:
    outer = RuntimeError("tool failed")
    outer.__cause__ = ConnectionRefusedError("no one there")

    assert outcome_of(outer) == Outcome(None, "connection", "tool failed: no one there")


def test_a_failed_command_shows_what_it_wrote() -> None:
    outcome = outcome_of(subprocess.CalledProcessError(1, ["make"], stderr=b"make: *** no rule\n"))

    assert outcome.error_type == "exec_nonzero"
    assert outcome.error_message.endswith("\nmake: *** no rule")


@pytest.mark.parametrize(
    "result",
    [
        ValueError(f"bad key {SECRET} given"),
        ValueError("bad key\n" + "x" * 100_000 + f" {SECRET}"),
        subprocess.CalledProcessError(1, ["deploy", "--token", SECRET], stderr=f"password={SECRET}".encode()),
        {"isError": True, "content": [{"type": "text", "text": f"bad key {SECRET} given"}]},
        {"isError": True, "content": [{"type": "text", "text": f"bad key {SECRET} given" + " ." * 5000}]},
    ],
    ids=["short", "long", "command", "mcp", "long mcp"],
)
def test_a_secret_in_an_error_does_not_reach_the_model(result: object) -> None:
    outcome = outcome_of(result)

    assert outcome.error_type is not None
    assert SECRET not in outcome.error_message
    assert SECRET not in str(outcome.value)


def test_an_error_message_is_never_a_traceback_and_never_long() -> None:
    text = (
        'failed: Traceback (most recent call last):\n  File "/srv/x.py", line 1, in f\n    g()\nOSError: gone '
        + "x" * 9999
    )
    message = outcome_of(RuntimeError(text)).error_message

    assert "File" not in message
    assert len(message) == 500


# Failures that come as results.


def mcp(text: str) -> dict[str, Any]:
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def test_a_short_failure_is_its_message() -> None:
    assert outcome_of(mcp("Tool call timed out.")) == Outcome(None, "timeout", "Tool call timed out.")


def test_of_a_long_failure_the_text_stays_beside_the_message() -> None:
    report = "Exit code 1\n" + "\n".join(f"test {n} failed" for n in range(500))
    outcome = outcome_of(mcp(report))

    assert (outcome.error_type, outcome.value, outcome.complete) == ("exec_nonzero", report, True)
    assert len(outcome.error_message) == 500


def test_of_an_enormous_failure_the_two_ends_stay() -> None:
    outcome = outcome_of(mcp("Exit code 1\n" + "x " * 100_000 + "the end"))

    assert not outcome.complete
    assert len(outcome.value) < 40_000
    assert outcome.value.endswith("the end")


def test_data_that_is_a_failure_stays_data() -> None:
    data = {"status": 400, "message": "bad date", "field": "check_in"}
    outcome = outcome_of(data, classifier=ResultClassifier(status_field="status"))

    assert outcome == Outcome(data, "validation", "bad date", 400)
    assert outcome.value is data


def test_a_declared_wait_is_kept() -> None:
    classifier = ResultClassifier(error_when=(FailureRule(field="error", present=True),), retry_after_field="wait")

    assert outcome_of({"error": "rate limit", "wait": 1.5}, classifier=classifier).retry_after_ms == 1500


def test_bytes_and_iterators_are_classified_after_they_are_resolved() -> None:
    classifier = ResultClassifier(text_matches=("^Error",), error_when=(FailureRule(field="0", equals="lost"),))

    assert outcome_of(b"Error: not found", classifier=classifier).error_type == "not_found"
    assert outcome_of(iter(["lost"]), classifier=classifier).error_type == "other"


def test_a_value_that_cannot_be_looked_at_is_still_a_result() -> None:
    class Closed:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    value = Closed()

    for classifier in (None, ResultClassifier(status_field="status")):
        outcome = outcome_of(value, classifier=classifier)
        assert outcome.error_type is None
        assert id(outcome.value) == id(value)


# Iterators, bytes, awaitables.


def test_an_endless_generator_becomes_a_bounded_list_that_says_so() -> None:
    outcome = outcome_of(itertools.count(), limit=1000)

    assert outcome.value == list(range(125))
    assert not outcome.complete


def test_a2_a_generator_that_raises_half_way_has_failed() -> None:
    def pages() -> Iterator[dict[str, int]]:
        yield {"page": 1}
        raise TimeoutError("page 2 did not come")

    assert outcome_of(pages()) == Outcome(None, "timeout", "page 2 did not come")


def test_bytes_become_text_or_base64() -> None:
    assert outcome_of("h\u00e9".encode()) == Outcome("h\u00e9")
    assert outcome_of(bytearray(b"\xff")) == Outcome({"base64": "/w==", "bytes": 1})
    assert outcome_of(b"\xff" * 10_000_000, limit=100).complete is False


def test_bytes_that_are_gone_are_an_error() -> None:
    view = memoryview(b"abc")
    view.release()

    assert outcome_of(view).error_type == "validation"


async def coroutine() -> int:
    return 1


async def stream(length: int | None, error: Exception | None = None) -> AsyncIterator[int]:
    for n in itertools.count() if length is None else range(length):
        yield n
    if error is not None:
        raise error


@pytest.mark.parametrize("make", [coroutine, lambda: stream(1)])
def test_what_was_not_awaited_is_an_error_that_says_so(make: Callable[[], Any]) -> None:
    outcome = outcome_of(make())

    assert outcome.error_type == "code_error"
    assert "unawaited" in outcome.error_message


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: stream(3), Outcome([0, 1, 2])),
        (lambda: stream(None), Outcome(list(range(13)), complete=False)),
        (lambda: stream(2, ConnectionError("the peer is gone")), Outcome(None, "connection", "the peer is gone")),
        (lambda: Success(stream(1), 0.1, 3), Outcome([0], cost=100_000, tokens=3)),
        (lambda: "plain", Outcome("plain")),
        (lambda: Success("plain", 0.1), Outcome("plain", cost=100_000)),
        (lambda: TimeoutError("too slow"), Outcome(None, "timeout", "too slow")),
    ],
)
def test_an_asynchronous_iterator_is_collected_where_one_can_wait(make: Callable[[], Any], expected: Outcome) -> None:
    assert asyncio.run(outcome_of_async(make(), limit=100)) == expected


def test_cancellation_passes_through() -> None:
    async def cancelled() -> AsyncIterator[int]:
        yield 1
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(outcome_of_async(cancelled()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=8,
)


@given(JSON | st.binary() | st.builds(iter, st.lists(JSON, max_size=3)) | st.builds(ValueError, st.text()))
def test_every_result_has_an_outcome(result: Any) -> None:
    classifier = ResultClassifier(
        status_field="status", error_when=(FailureRule(field="error", present=True),), text_matches=("(?i)error",)
    )
    outcome = outcome_of(result, classifier=classifier)

    assert outcome.error_type in {None, *ERROR_TYPES}
    assert bool(outcome.error_message) is (outcome.error_type is not None)


@pytest.mark.system
def test_a_success_imports_nothing_that_only_failures_need() -> None:
    code = (
        "import sys; from guardrails.core.outcome import outcome_of; outcome_of({}); outcome_of(b''); outcome_of(iter('a'));"
        "print([m for m in ('guardrails.core.outcome.redaction', 'guardrails.core.outcome.error_text', 'pydantic', 'email') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_what_the_library_cut_off_itself_is_held_against_no_schema() -> None:
    rules = ResultClassifier(error_when=(FailureRule(unfit={"type": "object"}),))
    text = b'{"id": 1, "name": "' + b"a" * 1_000 + b'"}'
    whole, cut = outcome_of(text, classifier=rules), outcome_of(text, classifier=rules, limit=100)
    assert (whole.error_type, whole.complete) == (None, True)
    assert (cut.error_type, cut.complete) == (None, False)
    assert outcome_of(text[:100], classifier=rules).error_type == "other"
