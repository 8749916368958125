"""
The comparison of words that a model reads: its scenes, what counts as obeyed, its figures, and one run with the real model.
"""

import json
import os

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.wordings.actions import Action, Asked, action_of, an_answer, another_tool, fits, other_than_it, the_same
from benchmarks.wordings.figures import Cell, Kept, cells
from benchmarks.wordings.scenes import SCENES, Scene, Told
from benchmarks.wordings.scenes import told as played
from benchmarks.wordings.tables import tables
from benchmarks.wordings.topics import TOPICS
from benchmarks.wordings.wordings import BEFORE, BIDS, COLUMNS, FIELDS, NOTHING, PROSE, SHIPPED, request, wordings
from guardrails.testing.scripted_openai import ScriptedOpenAI, Text
from tests.agent.real_model import ToolsByGrammar, started


HOTELS = TOPICS[0]
BY_NAME = {scene.name: scene for scene in SCENES}
REPEAT = BY_NAME["a repeat is refused"]
PYTHON = os.environ.get("GUARDRAILS_MODEL_PYTHON")


@cache
def told(scene: Scene, tool: str = HOTELS.tool) -> Told:
    """
    The scene in the topic of *tool*.
    """
    return played(scene, next(topic for topic in TOPICS if topic.tool == tool))


def completion(said: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(said, str):
        return {"choices": [{"message": {"content": said}}]}
    function = {"name": said["tool"], "arguments": json.dumps(said["arguments"])}
    return {"choices": [{"message": {"content": None, "tool_calls": [{"function": function}]}}]}


def reads(*words: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """
    A model that answers if the last result has one of *words*, and makes the same call again if not.
    """

    def ask(body: dict[str, Any]) -> dict[str, Any]:
        messages = body["messages"]
        if any(word in messages[-1]["content"] for word in words):
            return completion("The Sakura Inn.")
        made = next(message["tool_calls"] for message in reversed(messages) if message["role"] == "assistant")
        function = made[-1]["function"]
        return completion({"tool": function["name"], "arguments": json.loads(function["arguments"])})

    return ask


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_library_itself_says_the_words_of_a_scene_in_every_topic(scene: Scene) -> None:
    for topic in TOPICS:
        made = told(scene, topic.tool)
        said = wordings(made)
        assert said[SHIPPED] == made.body["messages"][-1]["content"]
        assert made.asked.tool.name == topic.tool
        assert "tool_choice" not in made.body
        assert len(set(said.values())) == len(said)
        assert list(said) == [wording for wording in COLUMNS if wording in said]


def test_a_scene_in_which_the_library_says_something_else_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"`a repeat is refused` about search_hotels: .*not streak.max_same"):
        told(REPEAT._replace(says="streak.max_same"))


def test_shipped_words_follow_the_library_and_are_no_copy() -> None:
    policy = "messages: {duplicates.evidence: {message: That was asked., hint: Go on.}}"
    said = json.loads(wordings(told(REPEAT._replace(policy=policy)))[SHIPPED])
    assert (said["message"], said["next_action_hint"]) == ("That was asked.", "Go on.")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_another_wording_changes_words_only_and_keeps_the_order(scene: Scene) -> None:
    said = wordings(told(scene))
    shipped = json.loads(said[SHIPPED])
    bare = {name: value for name, value in shipped.items() if name not in PROSE}
    assert list(json.loads(said[FIELDS]).items()) == list(bare.items())
    for wording in (BIDS, BEFORE):
        if wording in said:
            other = json.loads(said[wording])
            assert list(other) == [name for name in shipped if name in bare or name == "next_action_hint"]
            assert other["next_action_hint"] != shipped["next_action_hint"]
            assert "$" not in other["next_action_hint"]


def test_without_the_library_a_tool_says_its_result_or_its_error() -> None:
    assert json.loads(wordings(told(REPEAT))[NOTHING]) == [{"city": "Shibuya", "name": "Sakura Inn", "price": 150}]
    missing = told(BY_NAME["an argument is missing"])
    assert json.loads(wordings(missing)[NOTHING]) == {"error": "KeyError: 'city'"}


def test_a_request_differs_from_the_loop_s_in_its_last_result_only() -> None:
    made = told(REPEAT)
    body = request(made, BIDS, 7, 0.5)
    assert (body["seed"], body["temperature"]) == (7, 0.5)
    assert body["messages"][:-1] == made.body["messages"][:-1]
    assert body["messages"][-1] == {**made.body["messages"][-1], "content": wordings(made)[BIDS]}
    assert request(made, SHIPPED, 7, 0.5)["messages"] == made.body["messages"]


def test_without_the_library_no_result_is_of_ours() -> None:
    made = told(BY_NAME["a call over the limit"])
    messages = request(made, NOTHING, 7, 0.5)["messages"]
    results = [message for message in messages if message["role"] == "tool"]
    assert [json.loads(message["content"])[0]["city"] for message in results] == ["Shibuya", "Ginza"]
    assert [message["tool_call_id"] for message in results] == ["call_0_0", "call_0_1"]
    assert [message for message in messages if message not in results] == made.body["messages"][:-2]


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ({"tool": "find", "arguments": {"a": 1}}, Action("find", {"a": 1})),
        ("It is the Sakura Inn.", Action(None)),
        ('{"tool": "find", "arguments": {"a": "no end', Action("find")),
        ('{"answer": "no end', Action(None)),
        ("", Action(None)),
    ],
)
def test_the_next_action_is_read_from_a_completion(said: dict[str, Any] | str, action: Action) -> None:
    assert action_of(completion(said)) == action


def test_each_kind_of_obedience_tells_its_actions_apart() -> None:
    asked = Asked(HOTELS.tools[0], HOTELS.arguments())
    actions = {
        "same": Action("search_hotels", {"currency": "USD", "city": "Shibuya"}),
        "else": Action("search_hotels", {"city": "Ginza", "currency": "EUR"}),
        "unfit": Action("search_hotels", {"city": "Ginza", "currency": "dollars"}),
        "cut": Action("search_hotels"),
        "other": Action("list_cities", {"region": "Tokyo"}),
        "answer": Action(None),
    }
    obeyed = {
        obeys: {name for name, action in actions.items() if obeys(action, asked)}
        for obeys in (other_than_it, the_same, another_tool, an_answer, fits)
    }
    assert obeyed == {
        other_than_it: {"else", "unfit", "cut", "other", "answer"},
        the_same: {"same"},
        another_tool: {"other", "answer"},
        an_answer: {"answer"},
        fits: {"same", "else"},
    }


def test_a_model_that_reads_only_the_shipped_words_is_found_to_obey_only_those() -> None:
    made = [told(REPEAT, topic.tool) for topic in TOPICS]
    found = {cell.wording: cell for cell in cells(made, Kept(reads("already made")), 5, 0.8)}
    assert {wording: cell.obeyed for wording, cell in found.items() if cell.obeyed} == {SHIPPED: 20, "as text": 20}
    assert all(cell.asked == 20 and set(cell.topics) == {topic.tool for topic in TOPICS} for cell in found.values())
    assert found[SHIPPED].kinds == {"answer": 20}
    assert found[NOTHING].kinds == {"call": 20}


def test_each_wording_is_asked_with_the_same_seeds() -> None:
    asked: dict[str, list[int]] = {}

    def ask(body: dict[str, Any]) -> dict[str, Any]:
        asked.setdefault(body["messages"][-1]["content"], []).append(body["seed"])
        return completion("yes")

    cells([told(REPEAT)], Kept(ask), 3, 0.8)
    assert list(asked.values()) == [[1, 2, 3]] * 6


def test_an_answer_that_was_kept_is_not_asked_for_again(tmp_path: Path) -> None:
    made, file = told(REPEAT), tmp_path / "answers.jsonl"
    first = cells([made], Kept(reads("again"), file), 2, 0.8)

    def silent(body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError(body["messages"][-1]["content"])

    assert cells([made], Kept(silent, file), 2, 0.8) == first
    with pytest.raises(AssertionError):
        cells([made], Kept(silent, file), 3, 0.8)
    changed = made._replace(plain=("[]",) * 3)
    with pytest.raises(AssertionError, match=r"\[\]"):
        cells([changed], Kept(silent, file), 2, 0.8)


def cell(wording: str, obeyed: int, asked: int = 24) -> Cell:
    return Cell("a repeat is refused", "another call", wording, "Words | words.", obeyed, asked, {}, {})


@pytest.mark.parametrize(
    ("obeyed", "asked", "low", "high"), [(0, 24, 0.0, 0.138), (12, 24, 0.314, 0.686), (24, 24, 0.862, 1.0)]
)
def test_the_interval_of_a_share_is_wilson_s(obeyed: int, asked: int, low: float, high: float) -> None:
    assert cell("short", obeyed, asked).interval == pytest.approx((low, high), abs=0.001)


def test_a_wording_is_clearly_better_only_if_the_intervals_do_not_meet() -> None:
    near = tables([cell(SHIPPED, 12), cell(BIDS, 17)])
    assert "No wording is clearly more or less obeyed" in near
    assert "| 50 % (31 to 69) |  |  | 71 % (51 to 85) |" in near
    far = tables([cell(NOTHING, 1), cell(SHIPPED, 12), cell(BIDS, 24)])
    assert "* A repeat is refused: less without the library than with the shipped words." in far
    assert "* A repeat is refused: more with “bids” than with the shipped words." in far
    assert "**100 % (86 to 100)**" in far
    assert r"Words \| words." in far
    assert "| all |" not in far


def test_the_last_row_takes_all_scenes_together_for_wordings_that_each_of_them_has() -> None:
    second = [cell(wording, 24)._replace(scene="a repeat is told") for wording in (SHIPPED, BIDS, BEFORE)]
    shown = tables([cell(SHIPPED, 12), cell(BIDS, 0), *second])
    assert "| all |  |  |  | 75 % (61 to 85) |  |  | 50 % (36 to 64) |  |" in shown


def test_a_seed_and_a_temperature_reach_the_model() -> None:
    asked = {"messages": [{"role": "user", "content": "Hello"}], "model": "m"}
    with (
        ScriptedOpenAI([Text("one"), Text("two")]) as model,
        ToolsByGrammar(model.base_url.removesuffix("/v1")) as server,
    ):
        server.ask({**asked, "seed": 3, "temperature": 0.8, "max_tokens": 9})
        server.ask(asked)
        sent = [(body.get("seed"), body["temperature"], body["max_tokens"]) for body in model.requests]
    assert sent == [(3, 0.8, 9), (None, 0, 60)]


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="needs a real model: python3 dev.py model")
def test_a_real_model_is_asked_and_its_next_actions_are_counted() -> None:
    made = told(REPEAT)
    with started(PYTHON or "") as address, ToolsByGrammar(address) as server:
        found = cells([made], Kept(server.ask), 2, 0.8)
    print(tables(found))  # noqa: T201  what a real model does is worth a look
    assert [cell.wording for cell in found] == list(wordings(made))
    assert all(sum(cell.kinds.values()) == cell.asked == 2 for cell in found)
    # It takes its part in the scene: it knows the tools, and answers in the grammar.
    assert sum(cell.kinds.get("call", 0) for cell in found) > 0
