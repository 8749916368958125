"""
What is heard of a reply: how it begins, how its stream ends, and what an error says of it.
"""

import itertools
import json

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import ResponseFailed
from guardrails.integrations.openai.heard import Heard, in_one_line
from guardrails.integrations.openai.reading import Cut, Unreadable
from tests.tables import table


class Stream:
    """
    A stream as the client has it, whose body comes in *pieces*.
    """

    def __init__(self, *pieces: bytes, url: str = "http://127.0.0.1/v1", status_code: int = 200) -> None:
        self.response = self
        self.pieces = pieces
        self.url = url
        self.status_code = status_code
        self.headers = {"content-type": "text/event-stream"}

    def iter_bytes(self) -> Iterator[bytes]:
        return iter(self.pieces)

    async def aiter_bytes(self) -> Any:
        for piece in self.pieces:
            yield piece


def heard(body: bytes, cuts: list[int], **options: Any) -> Heard:
    """
    *body* in pieces, heard to its end.
    """
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    made = Stream(*(body[a:b] for a, b in itertools.pairwise(places)))
    listening = Heard(made, **options)
    assert b"".join(made.response.iter_bytes()) == body
    return listening


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
    assert heard(said.encode(), cuts).closed is (end in ("data: [DONE]\n\n", "data:[DONE]"))


@given(body=st.binary(max_size=600), cuts=st.lists(st.integers(0, 600), max_size=8))
def test_an_error_has_at_most_the_first_200_bytes_in_one_line(body: bytes, cuts: list[int]) -> None:
    told = heard(body, cuts).told(Cut())
    assert isinstance(told, ResponseFailed)
    assert told.body is not None
    assert len(told.body.encode()) <= 200
    assert len(str(told).splitlines()) == 1
    assert str(told).isprintable()


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


def test_the_url_is_shown_without_what_may_be_a_key() -> None:
    made = Stream(b"{}", url="http://me:secret-17@127.0.0.1:8000/v1/responses?api-key=secret-17", status_code=203)
    told = Heard(made).told(Unreadable("it is odd"))
    assert str(told) == "it is odd (HTTP 203 from `http://127.0.0.1:8000/v1/responses`: an empty body)"


@table("error", [KeyboardInterrupt(), OSError("no route"), TypeError("ours")])
def test_what_is_not_the_server_s_stays_as_it_is(error: BaseException) -> None:
    assert Heard(Stream()).told(error) is error
