"""
A model file is checked as a whole before anything of it is used, and says what a sum of look-ups says.
"""

import re

from typing import Any

import orjson
import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.retries.model import MAX_BYTES, Count, RetryModel, logistic, parse, text_of, times
from guardrails.core.retries.serving import LOOPS
from guardrails.core.retries.trail import LOOKBACK, UNKNOWN, Failure, Settled, Situation, extended, failure_of
from guardrails.core.values.errors import ModelError
from guardrails.offline.figures import wilson
from tests.core.retries.conftest import body, text
from tests.tables import table


def after(tool: str = "search", error: str = "timeout", delay_ms: int = 10_000, *, between: bool = False) -> Situation:
    failure = failure_of(extended(None, Settled(tool, 1, error, 0)), 0)
    return failure.retried(delay_ms, between=between)


def written(**changes: Any) -> bytes:
    """
    The file with *changes* that its writer knew nothing of.
    """
    return orjson.dumps({**orjson.loads(text()), **changes})


def test_a_model_is_read_as_it_was_written() -> None:
    model = parse(text())
    assert (model.intercept, model.evidence, len(model.name)) == (0.25, {"search": {"timeout": 60.0}}, 12)
    assert text() == text()
    assert model.name == parse(text(training={})).name != parse(text(training={"days": 1})).name


@table(("data", "said"), [
    *((data, "not JSON") for data in (b"", text()[:-40], b"\x80\x04\x95pickle")),
    *((data, "no retry model") for data in (b"[1]", b'{"format": "other"}', text_of(body(), LOOPS))),
    (b" " * (MAX_BYTES + 1), "bytes (at most"), (written(version=2), "reads 4: train it again: `guardrails train RECORDS -o FILE`"),
    (written(version=5), "or upgrade this library"), (written(intercept=0.5), "the hash does not fit"),
    (b'{"format": "guardrails.retry-model", "version": 4}', "the hash does not fit"),
])  # fmt: skip
def test_a_file_that_is_no_good_says_what_is_wrong_and_what_to_do(data: bytes, said: str) -> None:
    with pytest.raises(ModelError, match=re.escape(said)):
        parse(data)


@given(place=st.integers(0, len(text()) - 2), value=st.integers(0, 255))
def test_a_changed_byte_is_never_served(place: int, value: int) -> None:
    data = bytearray(text())
    data[place] = value
    try:
        made = parse(bytes(data))
    except ModelError:
        return
    # A change that says the same: a space, an escape, a number written otherwise.
    assert made.name == parse(text()).name


def test_a_probability_is_the_sum_of_what_all_tools_share_and_of_its_own(model: RetryModel) -> None:
    assert model.probability(after()) == pytest.approx(logistic(0.25 + 1.0 + 0.5))
    assert model.probability(after("new")) == pytest.approx(logistic(0.25 + 1.0))
    assert model.probability(after("odd|name\n\"'")) == pytest.approx(logistic(0.25 + 1.0 - 0.5 + 2.0))
    assert model.probability(after(delay_ms=0)) == pytest.approx(logistic(0.25 + 1.0 + 0.5 - 2.0))
    assert model.probability(after("new", "precondition", between=True)) == pytest.approx(logistic(0.25 - 4.0 + 7.0))


shares = st.tuples(st.floats(0, 500), st.floats(0, 1)).map(lambda made: [made[0], made[0] * made[1]])


@given(own=shares, every=shares)
def test_a_correction_is_a_share_between_the_tools_own_and_that_of_all(own: list[float], every: list[float]) -> None:
    said = parse(text(corrections={"t": {"validation": own}, "": {"validation": every}})).correction("t", "validation")
    rates = [s / n for n, s in (own, every) if n > 0]
    assert (said is None) is (not rates)
    assert said is None or min(rates) - 1e-9 <= said <= max(rates) + 1e-9


# Shares of few tries


@given(n=st.floats(0.01, 1e6), share=st.floats(0, 1))
def test_an_interval_holds_the_share_and_stays_between_0_and_1(n: float, share: float) -> None:
    low, high = wilson(Count(n, n * share))
    assert 0 <= low <= share + 1e-9
    assert share - 1e-9 <= high <= 1


@table(("share", "said"), [
    (0.0, "less than 1 time in 20"), (0.1, "1 time in 10"), (0.14, "3 times in 20"), (0.18, "1 time in 5"), (0.5, "1 time in 2"),
    (0.8, "4 times in 5"), (0.9, "9 times in 10"), (1.0, "more than 19 times in 20"),
])  # fmt: skip
def test_a_share_is_said_as_a_person_says_it(share: float, said: str) -> None:
    assert times(share) == said


# A9: what a session has seen of the tool, the error and the very call, as serving and training see it


OK, BAD, OTHER = None, "timeout", "rate_limit"


def call(error: str | None = BAD, at: int = 0, *, tool: str = "t", sig: int | None = 1) -> Settled:
    return Settled(tool, sig, error, at)


def seen(*calls: Settled, elapsed_ms: int | None = 0) -> Failure:
    trail: dict[str, Any] | None = None
    for each in calls:
        trail = extended(trail, each)
    return failure_of(trail or {}, elapsed_ms)


@table(("earlier", "expected"), [
    ([], {"attempt": 0, "run": 0, "tool_run": 0, "previous": UNKNOWN}), ([call()], {"attempt": 1, "run": 1, "tool_run": 1, "previous": 1}),
    ([call()] * 4, {"attempt": 3, "run": 3, "tool_run": 3, "previous": 1}), ([call(), call(OK)], {"attempt": 2, "run": 0, "previous": 0}),
    ([call(), call(OTHER)], {"run": 0}), ([call(), call(OK, tool="u", sig=9)], {"run": 1, "tool_run": 0, "previous": 0}),
    ([call(OK, sig=7)], {"attempt": 0}), ([call(sig=None)], {"attempt": 0, "run": 1}),
    ([call(), *[call(OK, tool="u")] * LOOKBACK], {"attempt": 0, "run": 0}),
    ([call(kind) for kind in ("unavailable", "server_error", "connection")], {"run": 3}),
])  # fmt: skip
def test_a_failure_is_judged_by_the_latest_calls(earlier: list[Settled], expected: dict[str, int]) -> None:
    made = seen(*earlier, call(at=60_000))._asdict()
    assert {name: made[name] for name in expected} == expected


@table(("calls", "since"), [
    ([call(OK, 0), call(BAD, 1_000), call(BAD, 2_000), call(BAD, 60_000)], 59_000), ([call(BAD, 0), call(OK, 1_000), call(BAD, 60_000)], 0),
    ([Settled("t", 1, BAD, None), call(BAD, 60_000)], None), ([call(BAD, 90_000), call(BAD, 60_000)], 0),
])  # fmt: skip
def test_since_is_from_the_first_failure_of_the_run(calls: list[Settled], since: int | None) -> None:
    assert seen(*calls).since_ms == since
    assert [seen(call(), elapsed_ms=age).age for age in (None, 60_000, 60_001, 600_001)] == [UNKNOWN, 0, 1, 2]


def test_what_an_answer_asked_for_holds_until_it_is_over_for_its_tool_and_the_latest_tools() -> None:
    trail = extended(None, call(OTHER, 0, tool="a"), 10_000)
    trail = extended(trail, call(OTHER, 1_000, tool="b"))
    trail = extended(trail, call(OTHER, 4_000, tool="a"), 2_000)
    again = [extended(trail, call(OTHER, at, tool=tool)) for tool, at in (("a", 4_000), ("b", 4_000), ("a", 10_000))]
    assert [failure_of(each, 0).left_ms for each in (trail, *again)] == [6_000, 6_000, None, None]
    for number in range(40):
        trail = extended(trail, call(OTHER, number, tool=f"t{number}"), 10_000)
    assert (len(trail["due"]) < 20, failure_of(trail, 0).left_ms) == (True, 10_000)


@table(("delay", "between", "expected"), [
    (0, False, {"delay": 0, "header": 1, "reach": 4, "between": False}), (5_000, True, {"delay": 3, "header": 2, "reach": 5, "between": True}),
    (None, False, {"delay": UNKNOWN, "header": 0, "reach": UNKNOWN}),
])  # fmt: skip
def test_a_retry_is_told_by_its_waits(delay: int | None, between: bool, expected: dict[str, int]) -> None:
    failure = seen(call())._replace(since_ms=10_000, left_ms=5_000)
    made = failure.retried(delay, between=between)._asdict()
    assert {name: made[name] for name in expected} == expected


@given(st.lists(st.tuples(st.sampled_from("tu"), st.sampled_from([OK, BAD, OTHER]), st.integers(0, 9)), max_size=60))
def test_a_trail_is_no_longer_than_what_is_looked_at(steps: list[tuple[str, str | None, int]]) -> None:
    calls = [call(error, 700 * at, tool=tool, sig=sig) for at, (tool, error, sig) in enumerate(steps)]
    failed = call(at=99_000)
    assert seen(*calls, failed) == seen(*calls[-LOOKBACK:], failed)._replace(
        previous=seen(*calls[-1:], failed).previous
    )
