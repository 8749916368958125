"""
JSON lines of one call each.
"""

import json

from typing import Any

from tests.tables import table


FULL = {
    "source": "data",
    "session_id": "s",
    "model": "m",
    "turn": 1,
    "call_index": 0,
    "tool": "t",
    "arguments": {},
    "result": "r",
    "result_sha1": "0123456789abcdef0123456789abcdef01234567",
    "result_norm_sha1": "fedcba9876543210",
    "is_error": False,
    "error_type": None,
    "ts": 1770889072.65,
    "duration_ms": 2,
    "tokens_in": 1,
    "tokens_out": 2,
    "cost_usd": None,
}


def test_lines_give_calls_with_the_hashes_of_the_full_results(read: Any) -> None:
    calls, _ = read("calls.jsonl")
    assert [(c.source, c.session_id, c.call_index, c.tool, c.is_error, c.error_type) for c in calls] == [
        ("mine", "a", 0, "Read", False, None),
        ("mine", "a", 1, "Edit", True, "precondition"),
        ("mine", "a", 2, "apply_patch", None, None),
        ("calls", "b", 0, "get", None, None),
        ("calls", "b", 1, "get", True, "server_error"),
        ("calls", "b", 2, "get", True, "cancelled"),
    ]
    assert calls[0].plain_hash == int("372ea08cab33e71", 16)
    assert calls[0].masked_hash == int("04f58b9c456107d", 16)
    assert calls[1].arguments["n"] == 123456789012345678901234567890
    assert [(c.has_result, c.ts_ms, c.duration_ms) for c in calls[:3]] == [
        (True, 1_770_889_072_650, 2),
        (True, 1_770_889_073_000, 3),
        (False, None, None),
    ]


def test_responses_are_told_apart_by_their_tokens(read: Any) -> None:
    rows = [FULL | {"call_index": n, "tokens_in": t, "tokens_out": None} for n, t in enumerate([5, None, 7, None])]
    calls, _ = read("\n".join(map(json.dumps, rows)))
    assert [c.turn for c in calls] == [1, 1, 2, 2]


def test_interleaved_sessions_keep_their_counts(read: Any) -> None:
    rows = [{"session_id": "ab"[n % 2], "tool": "t", "arguments": {}, "tokens_in": 1} for n in range(6)]
    calls, _ = read("\n".join(map(json.dumps, rows)))
    assert [(c.session_id, c.call_index, c.turn) for c in calls] == [
        (session, index, index + 1) for index in range(3) for session in "ab"
    ]


@table(
    "key, value, attribute, expected",
    [
        ("ts", "soon", "ts_ms", None),
        ("ts", -1, "ts_ms", None),
        ("ts", 1e300, "ts_ms", None),
        ("ts", 1_770_889_072, "ts_ms", 1_770_889_072_000),
        ("ts", 1_770_889_072_650, "ts_ms", 1_770_889_072_650),
        ("result_sha1", "no hash", "plain_hash", None),
        ("result_sha1", 7, "plain_hash", None),
        ("result_norm_sha1", "", "masked_hash", None),
        ("model", ["m"], "model", None),
        ("duration_ms", "2", "duration_ms", None),
        ("tokens_in", 1.0, "tokens_in", 1),
        ("tokens_in", 10**300, "tokens_in", None),
        ("cost_usd", True, "cost_usd", None),
        ("cost_usd", 1, "cost_usd", 1.0),
        ("call_index", "x", "call_index", 0),
        ("source", None, "source", "given"),
        ("result", {"a": 1}, "result", '{"a":1}'),
        ("arguments", [1], "arguments", [1]),
        ("arguments", {"n": 2**70}, "arguments", {"n": 2**70}),
        ("arguments", {"n": [-(2**64)]}, "arguments", {"n": [-(2**64)]}),
    ],
)
def test_an_odd_value_is_unknown_and_the_rest_is_read(
    read: Any, key: str, value: Any, attribute: str, expected: Any
) -> None:
    calls, report = read(json.dumps(FULL | {key: value}))
    assert getattr(calls[0], attribute) == expected
    assert report.broken == []


@table("kind", ["brand_new", 7, None, ["x"]])
def test_an_error_of_no_known_type_is_other(read: Any, kind: Any) -> None:
    calls, _ = read(json.dumps(FULL | {"is_error": True, "error_type": kind, "result": None, "tokens_in": 1.0}))
    assert calls[0].error_type == "other"


def test_a_result_without_a_flag_is_asked_whether_it_failed(read: Any) -> None:
    line = {"session_id": "s", "tool": "t", "arguments": {}, "result": "Error: connection reset"}
    calls, _ = read(json.dumps(line))
    assert [(c.has_result, c.is_error, c.error_type) for c in calls] == [(True, True, "connection")]
