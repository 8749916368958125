"""
Signs of more, wherever a result has them.
"""

import json

from typing import Any

import pytest

from guardrails import Policy, Summary
from guardrails.paging import extent_of
from tests.paging.results import CONTRADICTORY, MORE, MORE_TEXTS, WHOLE, WHOLE_TEXTS


def as_is(value: Any) -> Any:
    return value


def as_text(value: Any) -> Any:
    return json.dumps(value, indent=2)


def as_mcp_text(value: Any) -> Any:
    return {
        "content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}],
        "isError": False,
    }


def as_mcp_blocks(value: Any) -> Any:
    return [{"type": "text", "text": "Here is what was found."}, {"type": "text", "text": json.dumps(value)}]


def as_structured(value: Any) -> Any:
    told = [{"type": "text", "text": "Here is what was found."}]
    return {"content": told, "structuredContent": value if isinstance(value, dict) else {"result": value}}


CARRIERS = [as_is, as_text, as_mcp_text, as_mcp_blocks, as_structured]


def shown(value: Any) -> dict[str, Any]:
    session = Policy([Summary()]).session("s", clock=lambda: 0.0)
    read: dict[str, Any] = json.loads(session.call("t", {}, lambda tool, arguments: value).to_json())
    return read


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("name", MORE)
def test_a_sign_of_more_is_never_called_complete_and_the_hint_says_how_to_go_on(name: str, carrier: Any) -> None:
    read = shown(carrier(MORE[name]))
    assert read["is_complete"] is False
    assert "Do not search again" not in read["next_action_hint"]


@pytest.mark.parametrize("carrier", [as_is, as_mcp_text])
@pytest.mark.parametrize("text", MORE_TEXTS, ids=lambda text: text[-40:])
def test_a_text_that_says_that_it_is_not_all_is_not_complete(text: str, carrier: Any) -> None:
    read = shown(carrier(text))
    assert read["is_complete"] is False
    assert read["next_action_hint"]


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_result_is_complete_though_it_looks_like_a_page(name: str, carrier: Any) -> None:
    assert shown(carrier(WHOLE[name]))["is_complete"] is True


@pytest.mark.parametrize("carrier", [as_is, as_mcp_text])
@pytest.mark.parametrize("text", WHOLE_TEXTS, ids=lambda text: text[-40:])
def test_a_text_that_does_not_speak_of_itself_is_complete(text: str, carrier: Any) -> None:
    assert shown(carrier(text))["is_complete"] is True


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("name", CONTRADICTORY)
def test_of_signs_that_contradict_each_other_nothing_is_said(name: str, carrier: Any) -> None:
    read = shown(carrier(CONTRADICTORY[name]))
    assert "is_complete" not in read
    assert "Do not search again" not in read.get("next_action_hint", "")


def test_a_large_result_is_asked_for_the_keys_that_tell_and_not_walked_through() -> None:
    class Large(dict[str, Any]):
        def __iter__(self) -> Any:
            raise AssertionError

    large = Large(
        {"results": []} | {str(n): n for n in range(1_000)} | {"total": 7} | {f"-{n}": n for n in range(1_000)}
    )
    assert extent_of(large).total == 7
