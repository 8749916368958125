"""
What a proxy writes into a request, and all that stays as it was.
"""

import json

from hypothesis import given
from hypothesis import strategies as st

from guardrails.mcp.proxy.messages import carrying
from tests.tables import table


CARRIER = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(arguments=st.dictionaries(st.text(), VALUES), meta=st.none() | st.dictionaries(st.text(), VALUES))
def test_a_request_says_the_same_and_names_its_span(
    arguments: dict[str, object], meta: dict[str, object] | None
) -> None:
    params = {"name": "t", "arguments": arguments} | ({} if meta is None else {"_meta": meta})
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    made = json.loads(carrying(json.dumps(said).encode() + b"\n", CARRIER))
    assert made == {**said, "params": {**params, "_meta": {**(meta or {}), **CARRIER}}}


@table("digits", ["1.10", "1e400", "12345678901234567890.123456789012345678901", "-0.0", "1E-7"])
def test_a_fraction_keeps_its_digits(digits: str) -> None:
    line = b'{"method":"tools/call","params":{"name":"t","arguments":{"x":%b}}}\n' % digits.encode()
    assert b'{"x":%b}' % digits.encode() in carrying(line, CARRIER)


@table(
    "line",
    [
        b'{"params":{"arguments":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}}\n",
        b'{"params":{"arguments":{"x":NaN}}}\n',
        b'{"params":{"arguments":{"x":"\xff"}}}\n',
        b'{"params":{"arguments":{"x":' + b"1" * 5_000 + b"}}}\n",
    ],
)
def test_what_cannot_be_written_anew_passes_as_it_is(line: bytes) -> None:
    assert carrying(line, CARRIER) == line
