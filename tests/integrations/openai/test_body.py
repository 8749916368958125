"""
What is seen of a reply: how it begins, how its stream ends, and what an error says of it.
"""

import itertools
import json

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.integrations.openai.wires import Body, in_one_line
from tests.tables import table


class Stream:
    """
    A stream as the client has it, whose body comes in *pieces*.
    """

    def __init__(self, *pieces: bytes, url: str = "http://127.0.0.1/v1", status_code: int = 200) -> None:
        self.http_response = self
        self.pieces = pieces
        self.url = url
        self.status_code = status_code
        self.headers = {"content-type": "text/event-stream"}

    def parse(self) -> "Stream":
        return self

    def iter_bytes(self) -> Iterator[bytes]:
        return iter(self.pieces)

    async def aiter_bytes(self) -> Any:
        for piece in self.pieces:
            yield piece


def seen(body: bytes, cuts: list[int]) -> Body:
    """
    *body* in pieces, seen to its end.
    """
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    made = Stream(*(body[a:b] for a, b in itertools.pairwise(places)))
    passing = Body(None, made)
    assert b"".join(passing.stream(made).iter_bytes()) == body
    return passing


@given(
    texts=st.lists(st.sampled_from(["data: [DONE]", "\ndata: [DONE]", "it rains", "[DONE]", "d"]), max_size=4),
    end=st.sampled_from(["data: [DONE]\n\n", "data:[DONE]", "", "data: [DON", ": [DONE]\n", "xdata: [DONE]\n"]),
    eol=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_the_end_of_a_stream_is_known_wherever_it_is_cut_into_pieces(
    texts: list[str], end: str, eol: str, cuts: list[int]
) -> None:
    said = "".join(f"data: {json.dumps({'content': text})}{eol}{eol}" for text in texts) + end
    assert seen(said.encode(), cuts).closed is (end in ("data: [DONE]\n\n", "data:[DONE]"))


@table(
    ("said", "key", "shown"),
    [
        ("bad key local-key-17, try again", "local-key-17", "bad key [redacted], try again"),
        ("bad key sk-abcdefghijklmnopqrstuvwx", None, "bad key [redacted]"),
        ("none of it", "none", "none of it"),
        ("x" * 190 + " sk-abcdefghijklmnopqrstuvwx", None, "x" * 190 + " [redacted"),
        ("é" * 150, None, "é" * 100),
        ("x" + "é" * 150, None, "x" + "é" * 99),
        ("a\x00\x1b[2J\r\n\tb\x9b", None, "a[2J b"),
        ("", "local-key-17", ""),
    ],
)
def test_no_key_and_no_control_character_is_shown(said: str, key: str | None, shown: str) -> None:
    assert in_one_line(said, key) == shown
