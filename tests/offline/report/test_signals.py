"""
Whether a result says that it is complete.
"""

from collections.abc import Callable

from guardrails.offline.report.rows import signal_of
from guardrails.offline.transcripts import RecordedCall
from tests.tables import table


Calls = Callable[..., list[RecordedCall]]


@table(
    "result, signal",
    [
        ('{"is_complete": true, "results": []}', "said"),
        ('{"is_complete": false, "results": []}', "dead end"),
        ('{"is_complete": false, "next_action_hint": "ask for page 2"}', "said"),
        ('{"is_complete": false, "next_cursor": "abc"}', "said"),
        ('{"is_complete": false, "next_cursor": ""}', "dead end"),
        ('{"is_complete": false, "next_cursor": null}', "dead end"),
        ('{"has_more": true}', "said"),
        ('{"has_more": false}', "said"),
        ('{"found": 3}', "absent"),
        ("three hotels", "absent"),
        ('the page says "is_complete": true', "absent"),
        ("", "absent"),
        ('{"pad": "' + "x" * 50_000 + '", "is_complete": true}', "said"),
    ],
)
def test_a13_of_other_transcripts_only_a_json_object_can_say_it(calls: Calls, result: str, signal: str) -> None:
    (call,) = calls({"call": "a=", "result": result})
    assert signal_of(call) == signal


@table(
    "is_complete, result, signal",
    [
        (True, None, "said"),
        (True, "any text", "said"),
        (None, None, "absent"),
        (None, '{"is_complete": true}', "absent"),
        (False, None, "said"),
        (False, '{"result": 1}', "dead end"),
        (False, '{"result": 1, "next_action_hint": "go on"}', "said"),
    ],
)
def test_own_records_say_it_themselves(calls: Calls, is_complete: bool | None, result: str | None, signal: str) -> None:
    (call,) = calls({"call": "a=", "result": result, "is_complete": is_complete, "decision": "allow"})
    assert signal_of(call) == signal
