"""
Tool results of MCP that were written out as text.
"""

import json

from typing import Any

import pytest

from guardrails.offline.readers.text.mcp_text import unwrapped


def printed(text: str, failed: bool = False) -> str:
    return f"meta=None content=[TextContent(type='text', text={text!r}, annotations=None)] isError={failed}"


def wire(text: str, **more: Any) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}], **more})


@pytest.mark.parametrize(
    ("text", "inner", "failed"),
    [
        (printed('it\'s\n"so"'), 'it\'s\n"so"', False),
        (printed("no", failed=True), "no", True),
        (wire("a", isError=True), "a", True),
        (wire("a", isError=False, structuredContent=None), "a", False),
        (wire("a"), "a", False),
        (printed(wire("deep", isError=True)), "deep", True),
        (printed(wire("deep"), failed=True), "deep", True),
    ],
)
def test_a_wrapped_result_is_taken_out(text: str, inner: str, failed: bool) -> None:
    assert unwrapped(text) == (inner, failed)


@pytest.mark.parametrize(
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
        "meta=None content=[TextContent(type='text', text=open('x'))] isError=True",
        "meta=None content=[TextContent(type='text', text='cut",
        "content=[TextContent(type='text', text='\\ud8') ] isError=True",
        "content=[TextContent(type='text', text='\\N{no}')] isError=True",
    ],
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert unwrapped(text) == (text, None)
