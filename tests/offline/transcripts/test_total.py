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
    *(
        None,
        True,
        False,
        0,
        -1,
        2**70,
        1e308,
        "",
        "\ud800",
        "\x00",
        "x" * 3000,
        "2026-01-01T00:00:00Z",
        "{",
        '{"a": 1}',
    ),
    *([], {}, [[]], [None], {"type": []}, [{"type": {}}], {"text": 7}),
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


def check(calls: list[RecordedCall]) -> None:
    """
    What holds for the calls of any file.
    """
    for call in calls:
        assert isinstance(call.tool, str)
        assert call.tool
        assert isinstance(call.session_id, str)
        assert isinstance(call.call_index, int)
        assert call.error_type is None or call.error_type in ERROR_TYPES
        assert call.is_error in {None, True, False}
        assert call.has_result or call.result is None
        for text in (call.model, call.id, call.result):
            assert text is None or isinstance(text, str)
        for number in (call.turn, call.ts_ms, call.duration_ms, call.tokens_in, call.tokens_out, call.http_status):
            assert number is None or (isinstance(number, int) and 0 <= number <= 2**54)
        for evidence in (call.plain_hash, call.masked_hash, call.sig):
            assert evidence is None or isinstance(evidence, int)
        assert call.cost_usd is None or call.cost_usd >= 0


def read_by_all(data: bytes) -> list[RecordedCall]:
    calls: list[RecordedCall] = []
    for form in FORMATS:
        values = [(line, value) for line, value in values_of(data)[0] if form.fits(value) is not False]
        calls += joined(form.events(values, "f"), "source")
    check(calls)
    return calls


@settings(max_examples=200, deadline=None)
@given(path=st.sampled_from(FILES), seed=st.integers(0, 2**32), odds=st.sampled_from([0.02, 0.1, 0.3]))
def test_no_value_in_any_place_stops_any_reader(path: Path, seed: int, odds: float) -> None:
    chance = random.Random(seed)
    if path.suffix == ".json":
        text = json.dumps(spoilt(json.loads(path.read_text()), chance, odds))
    else:
        text = "\n".join(json.dumps(spoilt(json.loads(line), chance, odds)) for line in path.read_text().splitlines())
    read_by_all(text.encode())


@settings(max_examples=150, deadline=None)
@given(path=st.sampled_from(FILES), seed=st.integers(0, 2**32))
def test_no_bytes_in_any_place_stop_any_reader(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 40)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3)))
    del data[chance.randrange(len(data)) :]
    read_by_all(bytes(data))


@table("name", ["openai_chat.jsonl", "gemini_cli.jsonl", "openinference.jsonl"])
def test_a_result_before_which_a_file_is_cut_off_is_missing_and_no_other(read: Any, name: str) -> None:
    data = (Path(__file__).parent / "files" / name).read_bytes()
    whole = {(c.session_id, c.call_index): c for c in read(data)[0]}
    for cut in range(len(data) // 3, len(data), max(3, len(data) // 1500)):
        for call in read(data[:cut])[0]:
            known = whole[call.session_id, call.call_index]
            assert not call.has_result or (call.result, call.is_error) == (known.result, known.is_error)
