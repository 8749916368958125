"""
Bodies of requests as a proxy that listens reads them.
"""

import io

from guardrails.mcp.proxy.ends.bodies import body_of
from tests.tables import table


CHUNKED = {"Transfer-Encoding": "chunked"}


def test_a_body_in_chunks_is_the_same_as_one_of_a_length_that_is_said() -> None:
    source = io.BytesIO(b'5\r\n{"a":\r\n2;x=y\r\n1}\r\n0\r\nTrailer: x\r\n\r\nnext')
    assert body_of(CHUNKED, source) == b'{"a":1}'
    assert source.read() == b"next"
    assert body_of({"Content-Length": "7"}, io.BytesIO(b'{"a":1}next')) == b'{"a":1}'


@table(
    ("headers", "sent", "status"),
    [
        ({}, b"x", 411),
        ({"Content-Length": "-5"}, b"x", 411),
        ({"Content-Length": "999999999999"}, b"x", 413),
        ({"Content-Length": "5", **CHUNKED}, b"5\r\nhello\r\n0\r\n\r\n", 400),
        ({"Transfer-Encoding": "gzip, chunked"}, b"0\r\n\r\n", 400),
        (CHUNKED, b"0x5\r\nhello\r\n0\r\n\r\n", 400),
        (CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n", 400),
        (CHUNKED, b"5\r\nhelloworld\r\n0\r\n\r\n", 400),
        (CHUNKED, b"ffffffff\r\nhello", 413),
        (CHUNKED, b"5\r\nhel", 400),
        (CHUNKED, b"", 400),
    ],
)
def test_a_body_whose_end_is_not_sure_is_refused(headers: dict[str, str], sent: bytes, status: int) -> None:
    assert body_of(headers, io.BytesIO(sent)) == status
