"""
A transcript's text is data: whatever stands in it, reading goes on.
"""

import json
import random

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.transcripts import RecordedCall
from guardrails.offline.transcripts.calls import joined
from guardrails.offline.transcripts.files import FORMATS, values_of
from tests.tables import table


FILES = sorted((Path(__file__).parent / "files").iterdir())
ODD: list[Any] = [
    *(None, True, False, 0, -1, 2**70, 1e308, "", "\ud800", "\x00", "x" * 3000, "2026-01-01T00:00:00Z"),
    *("{", '{"a": 1}', [], {}, [[]], [None], {"type": []}, [{"type": {}}], {"text": 7}),
]


def spoilt(value: Any, chance: random.Random, odds: float) -> Any:
    """
    A copy of *value* in which some parts are something else, are missing or stand twice.
    """
    if chance.random() < odds:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {key: spoilt(each, chance, odds) for key, each in value.items() if chance.random() > odds}
        return kept | ({chance.choice(list(value)): chance.choice(ODD)} if value and chance.random() < odds else {})
    if isinstance(value, list):
        items = [spoilt(each, chance, odds) for each in value for _ in range(1 + (chance.random() < odds))]
        return chance.sample(items, len(items)) if chance.random() < odds else items

    return value


def check(data: bytes) -> None:
    """
    Let all formats read *data*; what holds for the calls of any file.
    """
    calls: list[RecordedCall] = []
    for form in FORMATS:
        values = [(line, value) for line, value in values_of(data)[0] if form.fits(value) is not False]
        calls += joined(form.events(values, "f"), "source")
    for call in calls:
        assert call.tool
        assert {*map(type, (call.tool, call.session_id))} == {str}
        assert call.error_type in {None, *ERROR_TYPES}
        assert call.is_error in {None, True, False}
        assert call.has_result or call.result is None
        assert {*map(type, (call.model, call.id, call.result))} <= {str, type(None)}
        assert {*map(type, (call.call_index, call.plain_hash, call.masked_hash, call.sig))} <= {int, type(None)}
        for number in (call.turn, call.ts_ms, call.duration_ms, call.tokens_in, call.tokens_out, call.http_status):
            assert number is None or (isinstance(number, int) and 0 <= number <= 2**54)
        assert call.cost_usd is None or call.cost_usd >= 0


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(FILES), seed=st.integers(0, 2**32), odds=st.sampled_from([0.0, 0.02, 0.1, 0.3]))
def test_no_value_and_no_bytes_in_any_place_stop_any_reader(path: Path, seed: int, odds: float) -> None:
    chance, text = random.Random(seed), path.read_text()
    if odds:
        lines = [text] if path.suffix == ".json" else text.splitlines()
        check("\n".join(json.dumps(spoilt(json.loads(line), chance, odds)) for line in lines).encode())
        return
    data = bytearray(text.encode())
    for _ in range(chance.randrange(1, 40)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3)))
    check(bytes(data[: chance.randrange(len(data))]))


@table("name", ["openai_chat.jsonl", "gemini_cli.jsonl", "openinference.jsonl"])
def test_a_result_before_which_a_file_is_cut_off_is_missing_and_no_other(read: Any, name: str) -> None:
    data = (Path(__file__).parent / "files" / name).read_bytes()
    whole = {(c.session_id, c.call_index): c for c in read(data)[0]}
    for cut in range(len(data) // 3, len(data), max(3, len(data) // 1500)):
        for call in read(data[:cut])[0]:
            known = whole[call.session_id, call.call_index]
            assert not call.has_result or (call.result, call.is_error) == (known.result, known.is_error)
