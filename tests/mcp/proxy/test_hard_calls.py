"""
Calls that try to get past the proxy, or that it must carry through what happens to processes.
"""

import json
import socket

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.proxy.lines import ROUGH, Lines, request, tap, words


pytestmark = pytest.mark.slow  # a start of two processes each
LOOSE = "version: 1\nbudget: {max_calls: 100000}\nvalidation: {}\n"
CAPPED = "version: 1\nbudget: {max_calls: %d}\n"


def file(folder: Path, policy: str) -> Path:
    found = folder / "policy.yaml"
    found.write_text(policy)
    return found


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lines]:
    policy = file(tmp_path_factory.mktemp("loose"), LOOSE)
    with Lines(*tap(*ROUGH, policy=policy), ROUGH_TOOLS="1000") as lines:
        yield lines.start()


def denied(found: dict[str, Any]) -> bool:
    return bool(found.get("isError")) and words(found).startswith("[guardrails:")


FORMS = {
    "plain": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d}}}',
    "escaped method": b'{"jsonrpc":"2.0","id":%d,"method":"tools\\u002fcall","params":{"name":"count","arguments":{"n":%d}}}',
    "escaped slash": b'{"jsonrpc":"2.0","id":%d,"method":"tools\\/call","params":{"name":"count","arguments":{"n":%d}}}',
    "all escaped": b'{"jsonrpc":"2.0","id":%d,"m\\u0065thod":"\\u0074ools/\\u0063all","params":{"n\\u0061me":'
    b'"c\\u006funt","arguments":{"n":%d}}}',
    "spaces": b' {\t"jsonrpc" :\r"2.0" , "id" : %d , "method" : "tools/call" , "params" : { "name" : "count" , '
    b'"arguments" : { "n" : %d } } } ',
    "twice": b'{"jsonrpc":"2.0","method":"ping","id":%d,"method":"tools/call","params":{"name":"x","name":"count",'
    b'"arguments":{"n":%d}}}',
    "huge": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d,"m":'
    + b"9" * 400
    + b"}}}",
    "nan": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d,"m":NaN}}}',
    "surrogate": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d,"m":'
    b'"\\ud800"}}}',
    "deep": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d,"m":'
    + b"[" * 400
    + b"]" * 400
    + b"}}}",
    "deeper": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d,"m":'
    + b"[" * 980
    + b"]" * 980
    + b"}}}",
    "inf": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d,"m":1e999}}}',
    "meta": b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"x":1},"name":"count","arguments":{"n":%d}}}',
    "no version": b'{"id":%d,"method":"tools/call","params":{"name":"count","arguments":{"n":%d}}}',
}


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_guarded_however_it_is_written(form: str, tmp_path: Path) -> None:
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 3))) as lines:
        lines.start()
        for n in range(6):
            lines.send(FORMS[form] % (n, n))
            found = json.loads(lines.reply(n))["result"]
            assert denied(found) is (n >= 3), found


@pytest.mark.parametrize(
    "argument", [b"[" * 3_000 + b"]" * 3_000, b'"\xff\xfe"', b"9" * 6_000, b'{"a":' * 2_000 + b"7" + b"}" * 2_000]
)
def test_a_call_that_many_servers_cannot_read_is_guarded_all_the_same(argument: bytes, tmp_path: Path) -> None:
    """
    Others can, and a model may nest what it sends as deep as it likes.
    """
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"arguments":{"m":%s},"name":"count"}}'
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 1)), ROUGH_LOG=str(tmp_path / "seen")) as lines:
        lines.start()
        lines.send(*(call % (n, argument) for n in range(3)))
        assert denied(json.loads(lines.reply(2))["result"])
    assert (tmp_path / "seen").read_bytes().count(argument) == 1


def test_a_call_without_an_id_is_not_run_when_the_budget_is_spent(tmp_path: Path) -> None:
    """
    Servers that do not mind would run it.
    """
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 1)), ROUGH_LOG=str(tmp_path / "seen")) as lines:
        lines.start()
        assert not denied(lines.call("echo"))
        lines.send(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"q":"secret"}}}')
        lines.ask("ping")
    assert b"secret" not in (tmp_path / "seen").read_bytes()


def test_calls_in_a_batch_are_guarded_each(tmp_path: Path) -> None:
    """
    Batches are of the revision 2025-03-26 only; a server may still take them.
    """
    batch = b"[" + b",".join(FORMS["plain"] % (n, n) for n in range(4)) + b"]"
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 1)), ROUGH_LOG=str(tmp_path / "seen")) as lines:
        lines.start()
        lines.send(batch, request("ping", id="end"))
        told = b"\n".join(lines.until(lambda line: b'"end"' in line))
    assert (tmp_path / "seen").read_bytes().count(b"count") <= 1
    assert told.count(b"jsonrpc") >= 1 + 3


@pytest.mark.parametrize("arguments", [b"[]", b'["a"]', b'"text"', b"7", b"true", b"null"])
def test_arguments_that_are_no_object_get_an_answer(arguments: bytes, loose: Lines) -> None:
    call = b'{"jsonrpc":"2.0","id":"odd","method":"tools/call","params":{"name":"search","arguments":%s}}'
    loose.send(call % arguments)
    found = json.loads(loose.reply("odd"))
    assert "error" in found or found["result"]["isError"]


def test_a_schema_that_points_elsewhere_is_not_fetched_and_the_call_runs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.2)
        reference = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/schema.json"
        with Lines(*tap(*ROUGH, policy=file(tmp_path, LOOSE)), ROUGH_REF=reference) as lines:
            lines.start()
            assert not lines.call("remote", x=1).get("isError")
            assert not lines.call("schema_is_wrong", x=1).get("isError")
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_tools_on_the_tenth_page_have_their_arguments_checked(loose: Lines) -> None:
    cursor, seen = None, 0
    while True:
        page = loose.ask("tools/list", {"cursor": cursor} if cursor else {}, id=f"page {cursor}")["result"]
        seen += len(page["tools"])
        cursor = page.get("nextCursor")
        if not cursor:
            break
    assert seen > 1000
    assert denied(loose.call("tool_990", town="Bern"))
    assert denied(loose.call("tool_990", city=7))
    assert not denied(loose.call("tool_990", city="Bern"))
    assert denied(loose.call("search", town="Bern"))


def test_arguments_are_not_checked_by_a_schema_that_the_server_has_taken_back(tmp_path: Path) -> None:
    """
    A client need not list the tools again at once.
    """
    with Lines(*tap(*ROUGH, policy=file(tmp_path, LOOSE), pins="none")) as lines:
        lines.start()
        assert denied(lines.call("search", town="Bern"))
        lines.call("change")
        assert not denied(lines.call("search", town="Basel"))
        lines.ask("tools/list", {}, id="again")
        assert not denied(lines.call("search", town="Chur"))


def test_an_answer_whose_id_comes_back_as_a_float_settles_its_call(tmp_path: Path) -> None:
    policy = file(tmp_path, LOOSE + "tools:\n  - {match: [float_id], timeout: 1s}\n")
    with Lines(*tap(*ROUGH, policy=policy)) as lines:
        lines.start()
        assert words(lines.call("float_id", id=7)) == "as Lua does"
        lines.call("slow", id=8, seconds=1.5)
        lines.send(request("ping", id="end"))
        assert len(list(lines.until(lambda line: b'"end"' in line))) == 1  # None says that its time is up.


def test_a_tool_that_was_not_listed_is_left_to_the_server(loose: Lines) -> None:
    assert json.loads(words(loose.call("never_listed", a=1))) == {"a": 1}


def test_a_call_before_the_tools_were_listed_is_guarded(tmp_path: Path) -> None:
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 1))) as lines:
        assert not denied(lines.call("count", n=1))
        assert denied(lines.call("count", n=2))


def test_a_call_sent_together_with_the_handshake_is_guarded_and_in_order(tmp_path: Path) -> None:
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 2))) as lines:
        hello = request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}, id="hello")
        lines.send(hello, *(FORMS["plain"] % (n, n) for n in range(5)))
        found = lines.replies("hello", *range(5))
        assert [denied(found[n]["result"]) for n in range(5)] == [False, False, True, True, True]
        assert [words(found[n]["result"]).splitlines()[0] for n in range(2)] == ["call 1", "call 2"]


def test_a_cancelled_call_is_dropped_and_its_id_may_be_used_again(tmp_path: Path) -> None:
    with Lines(*tap(*ROUGH, policy=file(tmp_path, CAPPED % 3))) as lines:
        lines.start()
        lines.send(request("tools/call", {"name": "slow", "arguments": {"seconds": 0.3}}, id=5))
        lines.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}')
        assert words(json.loads(lines.reply(5))["result"]) == "at last"  # This server does not mind.
        assert not denied(lines.call("count", id=5))
        assert not denied(lines.call("count", id=5, n=1))
        assert denied(lines.call("count", id=5, n=2))
