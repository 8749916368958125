"""
A11: the offline extraction and the online computer say the same of every failure.
"""

import random

from typing import Any

import pyarrow as pa
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.retries.labels import INVALID, CallRow
from guardrails.core.retries.spec import FeatureSpec
from guardrails.offline.learning.rows.rows import LATEST_MS
from guardrails.offline.learning.rows.sql import extraction
from guardrails.policy.models import shipped_spec
from tests.offline.learning.made_rows import by_python, by_sql, session, table


SHIPPED = shipped_spec()


def changed(**parts: Any) -> FeatureSpec:
    return FeatureSpec.parse({**SHIPPED.document(), **parts})


SPECS = {
    "shipped": SHIPPED,
    "every factor": changed(context={**SHIPPED.document()["context"], "since": [0, 1_000, 60_000]}),
    "short windows": changed(lookback=2, label={"max_calls": 2, "max_ms": 5_000}),
    "long edges": changed(context={"attempt": [0, 1, 2, 5, 7], "err_run": [0, 3, 7], "tool_run": [0, 1, 7]}),
    "little": changed(context={"prev": [0]}, action={"between": [0]}),
    # Codes up to 2,052,454,400 of 2^31: what is packed beside them has its place.
    "as many codes as there may be": changed(
        context={
            **{name: list(range(7)) for name in ("attempt", "err_run", "tool_run")},
            **{
                name: [500 * 2**k for k in range(21)] + list(range(2**30, 2**30 + 11))
                for name in ("ra", "elapsed", "since")
            },
            "fail_share": list(range(32, 64)),
            "prev": [0],
        }
    ),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_both_computers_agree_on_every_failure(spec: FeatureSpec) -> None:
    rng = random.Random(5)
    sessions = [session(rng, rng.randrange(1, 60)) for _ in range(150)]
    assert by_sql(spec, table(sessions)) == by_python(spec, sessions)


def test_the_order_of_the_rows_decides_nothing_where_calls_tie() -> None:
    rng = random.Random(7)
    calls = table([session(rng, 40) for _ in range(60)])
    at = calls.column_names.index("n")
    ties = calls.set_column(at, "n", pa.array([n // 5 for n in calls["n"].to_pylist()], pa.int64()))
    rows = list(range(ties.num_rows))
    found = by_sql(SHIPPED, ties)
    for _ in range(4):
        rng.shuffle(rows)
        assert by_sql(SHIPPED, ties.take(rows)) == found


def test_a_signature_of_several_tools_is_followed_in_the_order_of_its_calls() -> None:
    one = CallRow("b", 1, "timeout", 0, 10, 10, None, False, None)
    other = CallRow("a", 1, None, 20, 30, 30, None, False, "agent")
    ((*_, n, s, _, _),) = by_sql(SHIPPED, table([[one, other]])).values()
    assert (n, s) == (1, 1)


@pytest.mark.system
def test_both_computers_agree_on_very_many_calls(long: bool) -> None:
    rng = random.Random(7)
    total, rounds = 0, 10 if long else 2
    for _ in range(rounds):
        sessions = [session(rng, rng.randrange(1, 100)) for _ in range(2_050)]
        calls = table(sessions)
        total += len(calls)
        assert by_sql(SHIPPED, calls) == by_python(SHIPPED, sessions)
    assert total >= 100_000 * rounds


TIMES = st.none() | st.integers(0, 200_000) | st.sampled_from((2**22 - 1, 2**22, LATEST_MS))
ROWS = st.builds(
    CallRow,
    tool=st.sampled_from(("a", "b")),
    sig=st.none() | st.sampled_from((1, 2)),
    error_type=st.none() | st.sampled_from(("timeout", "rate_limit", "other", INVALID)),
    started_ms=TIMES,
    ended_ms=TIMES,
    elapsed_ms=st.none() | st.integers(0, 700_000),
    retry_after_ms=st.none() | st.integers(0, 130_000),
    changes=st.booleans(),
    source=st.none() | st.sampled_from(("agent", "policy", "explore")),
)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.lists(ROWS, max_size=45), min_size=1, max_size=8))
def test_both_computers_agree_on_any_session(drawn: list[list[CallRow]]) -> None:
    # A signature is of one tool.
    sessions = [
        [
            CallRow(**{**_fields(row), "sig": None if row.sig is None else row.sig + 10 * (row.tool == "b")})
            for row in rows
        ]
        for rows in drawn
    ]
    assert by_sql(SHIPPED, table(sessions)) == by_python(SHIPPED, sessions)


def _fields(row: CallRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CallRow.__slots__}


def test_an_unknown_error_type_counts_as_other() -> None:
    rows = [CallRow("t", 1, "made up"), CallRow("t", 1, None)]
    assert list(by_sql(SHIPPED, table([rows]))) == [(0, "t", "other")]


def test_the_text_holds_no_data_and_is_the_same_each_time() -> None:
    text = extraction(SHIPPED)
    assert text == extraction(changed())
    assert str(SHIPPED.max_ms) in text
    assert "hash(" not in text
    assert "//" not in text
