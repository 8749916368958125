"""
Bytes turned into the events of a YAML parser.
"""

import pytest

from guardrails.policy.file.yaml_events import MAX_BYTES, UnreadableError, check_text, decode, events


def test_text_is_decoded_whatever_it_holds_so_that_it_can_be_shown() -> None:
    text, source = decode(b"a: 1\r\nb: \xe9\n", "p.yaml")

    assert text == "a: 1\r\nb: \N{REPLACEMENT CHARACTER}\n"
    assert source.lines == ("a: 1", "b: \N{REPLACEMENT CHARACTER}", "")
    assert source.name == "p.yaml"


def test_size_is_checked_before_anything_else() -> None:
    text = b"\xff" * (MAX_BYTES + 1)

    with pytest.raises(UnreadableError, match="the file is larger than 1048576 bytes"):
        check_text(text, *decode(text, "t"))

    check_text(b" " * MAX_BYTES, *decode(b" " * MAX_BYTES, "t"))


def test_letters_of_all_languages_are_allowed() -> None:
    text = "a: 日本語 العربية 😀 ñ\t\u00a0"

    check_text(text.encode(), *decode(text.encode(), "t"))


def test_events_end_where_the_text_is_no_longer_yaml() -> None:
    stream = events("a: 1\nb: [", decode("a: 1\nb: [", "t")[1])

    with pytest.raises(UnreadableError) as caught:
        list(stream)

    position = caught.value.mistake.position
    assert (position.line, position.column) == (2, 5)
