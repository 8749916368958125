"""
Tool results of MCP that were written out as text.
"""

import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.transcripts.mcp_text import unwrapped
from tests.tables import table


def printed(text: str, failed: bool = False) -> str:
    return f"meta=None content=[TextContent(type='text', text={text!r}, annotations=None)] isError={failed}"


def wire(text: str, **more: Any) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}], **more})


def answer(**said: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, **said})


@table(
    "text, inner, failed",
    [
        (printed('it\'s\n"so"'), 'it\'s\n"so"', False),
        (printed("no", failed=True), "no", True),
        (wire("a", isError=True), "a", True),
        (wire("a", isError=False, structuredContent=None), "a", False),
        (wire("a"), "a", False),
        (printed(wire("deep", isError=True)), "deep", True),
        (printed(wire("deep"), failed=True), "deep", True),
        (
            wire("a", isError=True).replace("[{", '[{"type": "image", "data": "x"}, {'),
            '{"type":"image","data":"x"}\na',
            True,
        ),
        ('{"type":"text","text":"Error: no","annotations":null,"meta":null}', "Error: no", False),
        ('{"annotations": null, "text": "sorted", "type": "text"}', "sorted", False),
        ('[{"type":"text","text":"a"},{"type":"text","text":"b","id":"lc_1"}]', "a\nb", False),
        ('{"type":"text","text":"a"}\n{"type":"text","text":"b"}', "a\nb", False),
        (json.dumps({"type": "text", "text": wire("deep", isError=True)}), "deep", True),
        (json.dumps([{"type": "text", "text": json.dumps({"type": "text", "text": "twice"})}]), "twice", False),
        ('{"type":"text","text":"Error: a text that was c', "Error: a text that was c", False),
        ('{"annotations":null,"type":"text","text":"Error: cut \\u00', "Error: cut ", False),
        ('[{"type":"text","text":"Error: whole"},{"type":"text","te', 'Error: whole\n{"type":"text"}', False),
        ('[{"type":"text","text":"Error: whole","annotations":nul', "Error: whole", False),
        ('{"content":[{"type":"text","text":"Error: cut\\', "Error: cut", False),
        ('{"isError":true,"content":[{"type":"text","text":"cut', "cut", True),
        ('{"type":"text","text":"a"}\n{"type":"text","text":"cut', "a\ncut", False),
        ('\n [{"type":"text","text":"a"}]\n', "a", False),
        (
            json.dumps([{"type": "image", "data": "x" * 400}, {"type": "text", "text": "after a picture"}]),
            '{"type":"image","data":"' + "x" * 400 + '"}\nafter a picture',
            False,
        ),
        (
            json.dumps({"structuredContent": {"a": "x" * 400}, "content": [{"type": "text", "text": "a"}]}),
            "a",
            False,
        ),
        (
            '[{"type":"text","text":"a"},{"type":"resource_link","uri":"x"}]',
            'a\n{"type":"resource_link","uri":"x"}',
            False,
        ),
        (str([{"type": "text", "text": "it's", "id": None}]), "it's", False),
        (
            "[TextContent(type='text', text='a', annotations=None, meta=None), TextContent(type='text', text=\"b'\")]",
            "a\nb'",
            False,
        ),
        (
            "CallToolResult(meta=None, content=[TextContent(type='text', text='a', annotations=None)], isError=True)",
            "a",
            True,
        ),
        (wire("a", is_error=True), "a", True),
        (wire("a", is_error=False, structured_content={"a": 1}), "a", False),
        (wire("a", structured_content=None), "a", False),
        (answer(result=json.loads(wire("a", isError=True))), "a", True),
        (answer(result=json.loads(wire("a"))), "a", False),
        (answer(error={"code": -32602, "message": "no such tool"}), "MCP error -32602: no such tool", True),
        (answer(error={"code": -32000, "message": "", "data": {"x": 1}}), "MCP error -32000: ", True),
        (json.dumps(wire("a", isError=True)), "a", True),
        (json.dumps(json.dumps(answer(result=json.loads(wire("a", is_error=True))))), "a", True),
        (json.dumps({"type": "text", "text": json.dumps(wire("deep", isError=True))}), "deep", True),
    ],
)
def test_a_wrapped_result_is_taken_out(text: str, inner: str, failed: bool) -> None:
    assert unwrapped(text) == (inner, failed)


@table(
    "text",
    [
        "",
        "plain",
        "{",
        '{"content": "text"}',
        '{"content": []}',
        '{"content": [7]}',
        '{"content": [{"type": "image", "data": "x"}], "isError": true}',
        '{"content": [{"type": "text", "text": 7}], "isError": true}',
        '{"content": [{"type": "text", "text": "a"}], "isError": "no"}',
        '{"content": [{"type": "text", "text": "a"}], "title": "a page"}',
        '{"type": "text", "text": "a", "price": 3}',
        '{"type": "note", "text": "a"}',
        '{"text": "a"}',
        '[{"text": "a"}, {"text": "b"}]',
        '[{"type": "text", "text": "a"}, {"type": "assistant"}]',
        '[{"type": "text", "text": "a"}, 7]',
        '{"type": "text", "text": "a"}\nand more',
        '{"type": "text", "text": "a", "price": 3, "na',
        '{"content": [{"type": "text", "text": "a"}], "title": "a page that was c',
        '{"content": [{"type": "text"',
        "[{'type': 'text', 'text': open('x')}]",
        "meta=None content=[TextContent(type='text', text=open('x'))] isError=True",
        "meta=None content=[TextContent(type='text', text='cut",
        "content=[TextContent(type='text', text='\\ud8') ] isError=True",
        "content=[TextContent(type='text', text='\\N{no}')] isError=True",
        '{"content": [{"type": "text", "text": "a"}], "isError": true, "is_error": "no"}',
        '{"jsonrpc": "2.0", "method": "tools/call", "params": {"content": []}}',
        '{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}',
        '{"jsonrpc": "2.0", "id": 1, "error": "no"}',
        '{"jsonrpc": "2.0", "id": 1, "error": {"code": "no", "message": "no"}}',
        '{"jsonrpc": "1.0", "id": 1, "error": {"code": 1, "message": "no"}}',
        '{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}, "log": "and more"}',
        json.dumps("a text in quotes"),
        json.dumps('{"a": 1}'),
        '"',
        '"a" and "b"',
    ],
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert unwrapped(text) == (text, None)


@given(
    st.text(st.characters(codec="utf-8"), max_size=60).filter(lambda text: unwrapped(text).failed is None),
    st.booleans(),
    st.lists(st.sampled_from(["answer", "string", "block"]), max_size=2),
)
def test_no_form_in_which_a_result_is_stored_changes_its_text_or_its_flag(
    text: str, failed: bool, layers: list[str]
) -> None:
    stored = wire(text, isError=failed)
    for layer in layers:
        if layer == "string":
            stored = json.dumps(stored)
        elif layer == "answer":
            stored = answer(result=json.loads(wire(stored)))
        else:
            stored = json.dumps([{"type": "text", "text": stored}])
    assert unwrapped(stored) == (text, failed)
