"""
Servers that misbehave, behind the proxy: what the client reads is what it would read without it, byte for byte.
"""

import json
import time

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.proxy.lines import ROUGH, Lines, request, tap, words
from tests.mcp.proxy.rough_server import JUNK, ODD


PLAIN = "version: 1\nbudget: {max_calls: 100000}\n"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("policy") / "plain.yaml"
    file.write_text(PLAIN)
    return file


@pytest.fixture(scope="module")
def through(policy: Path) -> Iterator[Lines]:
    with Lines(*tap(*ROUGH, policy="default", store=policy.with_name("s.db"))) as lines:
        yield lines.start()


@pytest.fixture(scope="module")
def direct() -> Iterator[Lines]:
    with Lines(*ROUGH) as lines:
        yield lines.start()


def both(direct: Lines, through: Lines, *sent: bytes, last: bytes) -> tuple[list[bytes], list[bytes]]:
    """
    What comes back, without the proxy and with it, up to the line with *last*.
    """
    found = []
    for lines in (direct, through):
        lines.send(*sent)
        found.append(list(lines.until(lambda line: last in line)))
    return found[0], found[1]


@pytest.mark.parametrize("case", ODD)
def test_an_odd_answer_passes_byte_for_byte(case: str, direct: Lines, through: Lines) -> None:
    call = request("tools/call", {"name": "odd", "arguments": {"case": case}}, id=f"odd-{case}")
    without, with_proxy = both(direct, through, call, request("ping", id=f"end-{case}"), last=f"end-{case}".encode())
    assert with_proxy == without
    assert with_proxy[0] == ODD[case].replace(b"@", f'"odd-{case}"'.encode())


def test_what_is_no_answer_of_ours_passes_byte_for_byte(direct: Lines, through: Lines) -> None:
    call = request("tools/call", {"name": "junk"}, id="junk")
    without, with_proxy = both(direct, through, call, last=b"after junk")
    assert with_proxy == without
    assert with_proxy[:-1] == list(JUNK)


REQUESTS = {
    "method of 2031": b'{"jsonrpc":"2.0","id":"%s","method":"x/of-2031","params":{"z":1,"a":[1,  2]}}',
    "order": b'{"params":{"b":1,"a":2},"method":"resources/read","id":"%s","jsonrpc":"2.0"}',
    "spaces": b' \t{ "jsonrpc" : "2.0" , "id" : "%s", "method" : "ping" }  ',
    "huge": b'{"jsonrpc":"2.0","id":"%s","method":"x","params":{"n":' + b"7" * 300 + b',"m":1e999}}',
    "twice": b'{"jsonrpc":"2.0","id":"%s","method":"x","params":{"a":1,"a":2}}',
    "nan": b'{"jsonrpc":"2.0","id":"%s","method":"x","params":{"a":NaN}}',
    "deep": b'{"jsonrpc":"2.0","id":"%s","method":"x","params":' + b"[" * 800 + b"]" * 800 + b"}",
    "task": b'{"jsonrpc":"2.0","id":"%s","method":"tasks/get","params":{"taskId":"t"}}',
    "list params": b'{"jsonrpc":"2.0","id":"%s","method":"tools/list","params":[1]}',
    "calls no name": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{}}',
    "calls a number": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":7}}',
    "call without params": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call"}',
}
CALLS = {
    "order": b'{"params":{"arguments":{"z":1,"a":2},"name":"hear"},"method":"tools/call","id":"%s","jsonrpc":"2.0"}',
    "escaped": b'{"jsonrpc":"2.0","id":"%s","method":"tools\\u002fcall","params":{"name":"h\\u0065ar","arguments":{}}}',
    "huge": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear","arguments":{"n":'
    + b"7" * 300
    + b"}}}",
    "twice": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"x","name":"hear","arguments":'
    b'{"a":1,"a":2}}}',
    "no arguments": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear"}}',
    "null": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear","arguments":null}}',
    "meta": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear","arguments":{"q":3},"_meta":'
    b'{"progressToken":123456789012345678901234567890,"x/y":"\\u00e9"}}}',
    "surrogate": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear","arguments":{"s":"\\ud800"}}}',
    "float": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear","arguments":{"f":1.10,"g":1E2}}}',
    "more": b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"hear","arguments":{"t":1},"task":{"ttl":'
    b'1},"x":0},"z":1}',
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_that_is_not_ours_reaches_the_server_byte_for_byte(case: str, direct: Lines, through: Lines) -> None:
    sent = REQUESTS[case] % f"r {case}".encode()
    without, with_proxy = both(direct, through, sent, last=f"r {case}".encode())
    assert with_proxy == without
    if case != "list params":
        assert sent.hex() in with_proxy[0].decode()


@pytest.mark.parametrize("case", CALLS)
def test_a_call_reaches_the_server_byte_for_byte(case: str, direct: Lines, through: Lines) -> None:
    sent = CALLS[case] % f"c {case}".encode()
    without, with_proxy = both(direct, through, sent, last=f"c {case}".encode())
    assert with_proxy == without
    assert sent.hex() in with_proxy[0].decode()


@pytest.mark.parametrize(
    "line", [b"", b"no JSON", b"{", b"\xff\xfe", b"[]", b"7", b"null", b'{"id":1}', b"[" * 90_000], ids=repr
)
def test_what_is_no_message_reaches_the_server_as_it_is(line: bytes, direct: Lines, through: Lines) -> None:
    end = f"after {line[:20]!r}"
    without, with_proxy = both(direct, through, line, request("ping", id=end), last=b'"after ')
    assert with_proxy == without


def test_a_client_that_ends_its_lines_with_a_return_is_understood(through: Lines) -> None:
    through.send(request("tools/call", {"name": "hear", "arguments": {"r": 1}}, id="return") + b"\r")
    assert words(json.loads(through.reply("return"))["result"]).endswith(b"}\r".hex())


def test_ten_thousand_notifications_pass_in_order(through: Lines) -> None:
    through.send(request("tools/call", {"name": "flood"}, id="flood"))
    found = list(through.until(lambda line: b"after the flood" in line))
    assert [json.loads(line)["params"]["data"] for line in found[:-1]] == list(range(10_000))


@pytest.mark.slow
def test_a_line_of_twenty_megabytes_that_is_no_result_passes(through: Lines) -> None:
    through.send(request("tools/call", {"name": "endless", "arguments": {"megabytes": 20}}, id="endless"))
    long, end = through.until(lambda line: b"after the line" in line)
    assert len(long) > 20_000_000
    assert b"after the line" in end


@pytest.mark.parametrize("name", [0, -1, 7, 2**31, 2**53 + 1, 10**40, "0", "", "é", "\u2028", "a" * 5000], ids=repr)
def test_an_id_of_any_type_gets_its_answer(name: int | str, through: Lines) -> None:
    found = through.call("echo", id=name, seen=repr(name))
    assert json.loads(words(found)) == {"seen": repr(name)}


@pytest.mark.parametrize("name", [b"null", b"1.5", b"true", b"[1]", b'{"a":1}', b"1e3"])
def test_an_id_that_no_client_may_use_passes_all_the_same(name: bytes, direct: Lines, through: Lines) -> None:
    call = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"id":"%s"}}}'
    sent = call % (name, name.replace(b'"', b""))
    end = b"end of " + name.replace(b'"', b"")
    without, with_proxy = both(direct, through, sent, request("ping", id=end.decode()), last=end)
    assert with_proxy == without


def test_two_calls_under_one_id_both_get_an_answer(through: Lines) -> None:
    call = {"name": "slow", "arguments": {"seconds": 0.1}}
    through.send(request("tools/call", call, id="same"), request("tools/call", {**call, "arguments": {}}, id="same"))
    assert [words(json.loads(through.reply("same"))["result"]) for _ in range(2)] == ["at last"] * 2


def test_a_reply_that_comes_twice_or_for_nobody_passes(direct: Lines, through: Lines) -> None:
    calls = (request("tools/call", {"name": name}, id=f"n {name}") for name in ("again", "unknown_id"))
    without, with_proxy = both(direct, through, *calls, request("ping", id="end of replies"), last=b"end of replies")
    assert with_proxy == without
    assert len(with_proxy) == 5


def test_a_request_of_the_server_under_the_calls_own_id_is_no_answer(through: Lines) -> None:
    """
    Each side counts its ids for itself, so the server may ask with an id that the client has used.
    """
    through.send(request("tools/call", {"name": "ask"}, id=5))
    assert json.loads(through.next())["method"] == "roots/list"
    reply = b'{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}'
    through.send(reply)
    assert words(json.loads(through.reply(5))["result"]) == (reply + b"\n").hex()


def test_three_hundred_calls_that_are_open_at_once_each_get_their_own_answer(policy: Path) -> None:
    with Lines(*tap(*ROUGH, policy=policy)) as lines:
        lines.start()
        lines.send(*(request("tools/call", {"name": "echo", "arguments": {"n": n}}, id=n) for n in range(300)))
        found = {
            reply["id"]: json.loads(words(reply["result"])) for reply in (json.loads(lines.next()) for _ in range(300))
        }
    assert found == {n: {"n": n} for n in range(300)}


def test_a_server_that_dies_in_mid_call_ends_the_proxy_and_the_call_is_answered(policy: Path) -> None:
    with Lines(*tap(*ROUGH, policy=policy)) as lines:
        lines.start()
        lines.send(request("tools/call", {"name": "die"}, id=1))
        found = json.loads(lines.reply(1))
        assert found.get("error") or found["result"]["isError"]
        with pytest.raises(EOFError):
            lines.next()
        assert lines.close() != 0


def test_a_server_that_dies_in_mid_call_without_open_calls_ends_the_proxy(policy: Path) -> None:
    with Lines(*tap(*ROUGH, policy=policy)) as lines:
        lines.start()
        lines.send(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"none"}}')
        assert lines.close() == 0


@pytest.mark.slow
def test_a_result_of_a_hundred_megabytes_is_cut_and_the_next_call_runs(policy: Path) -> None:
    with Lines(*tap(*ROUGH, policy="default", store=policy.with_name("big.db"))) as lines:
        lines.start()
        found = lines.call("big", megabytes=100, seconds=60)
        assert len(json.dumps(found)) < 200_000
        assert "echo" not in words(found)
        assert json.loads(words(lines.call("echo", a=1))) == {"a": 1}


@pytest.mark.slow
def test_a_call_that_hangs_is_answered_at_its_deadline(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PLAIN + "tools:\n  - {match: [slow], timeout: 200ms}\n")
    with Lines(*tap(*ROUGH, policy=file)) as lines:
        lines.start()
        began = time.monotonic()
        found = lines.call("slow", seconds=3)
        assert time.monotonic() - began < 2.8
        assert found["isError"]
        assert "structuredContent" not in found
        # The answer that comes too late is not sent: a second reply to one id is an error to many clients.
        lines.send(request("ping", id="end"))
        late = list(lines.until(lambda line: b'"end"' in line))
        assert not [line for line in late if b"at last" in line]
