"""
What a file without calls looks like.
"""

import json

from guardrails.offline.readers.text.looks import looks_like
from tests.tables import table


@table(
    "head, said",
    [
        (b"hello\nworld\n", "text, 2 lines, 12 bytes"),
        (b"one", "text, 1 line, 3 bytes"),
        (b"\n\n", "blank lines, 2 lines, 2 bytes"),
        (b"\x00\x01\x02", "binary data, 3 bytes"),
        (bytes(range(128, 256)), "binary data, 128 bytes"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image, 8 bytes"),
        (b"PAR1abc", "a Parquet file, 7 bytes"),
        (b"SQLite format 3\x00abc", "an SQLite database, 19 bytes"),
        (b"a,b\n1,2\n3,4\n", "a table separated by commas, 3 lines, 12 bytes"),
        (b"a\tb\n1\t2\n", "a table separated by tabs, 2 lines, 8 bytes"),
        (b"<!doctype html>\n<p>", "HTML or XML, 2 lines, 19 bytes"),
        (b'{"a": 1}\n{"b": 2}\n', "JSON lines of another form (keys `a`, `b`), 2 lines, 18 bytes"),
        (b'{"a": 1}', "JSON of another form (keys `a`), 1 line, 8 bytes"),
        (b'{\n"a": [1,\n2]}\n', "JSON of another form (keys `a`), 3 lines, 15 bytes"),
        (b"[1, 2]\n", "JSON of another form, without an object, 1 line, 7 bytes"),
        (b'{"a": 1, "b": "tex', "JSON that is cut off (keys `a`), 1 line, 18 bytes"),
        (b'{"a": 1}\n{"b": "te', "JSON lines of which the last is cut off (keys `a`), 2 lines, 18 bytes"),
        (b"} {", "text, 1 line, 3 bytes"),
        (b"{not json at all\n", "JSON that is cut off, without an object, 1 line, 17 bytes"),
        (b"[]", "JSON with nothing in it, 1 line, 2 bytes"),
        (b"{}\n{}\n", "JSON with nothing in it, 2 lines, 6 bytes"),
        (b'[{"a": 1}, {"b": 2}]', "JSON of another form (keys `a`, `b`), 1 line, 20 bytes"),
        (b"[tool.x]\nb = 1\n", "text, 2 lines, 15 bytes"),
        (b"[1,", "JSON that is cut off, without an object, 1 line, 3 bytes"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16 text; convert it to UTF-8"),
        ('{"a": 1}'.encode("utf-16-be"), "UTF-16 text; convert it to UTF-8"),
        ('{"a": 1}'.encode("utf-32-le"), "UTF-32 text; convert it to UTF-8"),
        ('{"a": 1}'.encode("utf-32"), "UTF-32 text; convert it to UTF-8"),
        (b"\x00\x00\x00\x00", "binary data, 4 bytes"),
        (b"a" * 257 + b"ustar\x00", "a tar archive, 263 bytes"),
        ("Grüße, nicht mehr\n".encode(), "text, 1 line, 20 bytes"),
    ],
)
def test_the_first_bytes_tell_what_it_is(head: bytes, said: str) -> None:
    assert looks_like(head) == said


def test_many_keys_are_not_all_named_and_a_long_file_is_longer_than_its_head() -> None:
    line = json.dumps(dict.fromkeys("abcdefg", 1) | {"x" * 99: 2}).encode() + b"\n"
    told = looks_like((line * 1_000)[:65_536], more=True)
    assert told.startswith("JSON lines of another form (keys `a`, `b`, `c`, `d`, `e`, ...), at least ")
    assert told.endswith("more than 65,536 bytes")
