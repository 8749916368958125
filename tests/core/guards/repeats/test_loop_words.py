"""
What a nudge says is true: the calls were what it says, and its advice follows from how they failed.
"""

import re

from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Loops, Policy
from guardrails.core.guards.repeats.loop_words import ADVICE, ALIKE, WORDS, denial_of, hints_of, nudge_of
from guardrails.core.result.exceptions import diagnosis_of
from guardrails.core.state.state import Pending
from guardrails.core.values.types import ErrorType
from tests.tables import table


KINDS: tuple[ErrorType, ...] = get_args(ErrorType)
UNCLEAR = ("exec_nonzero", "code_error", "other", "cancelled")


@table("kind", KINDS)
def test_failures_alike_are_stated_with_their_kind_and_advised_on_if_the_kind_tells(kind: ErrorType) -> None:
    said = nudge_of("same_error", "read", 3, 0, kind)
    assert said.hint == f"The last 3 calls of `read` failed alike: {kind}. {ADVICE.get(kind, '')}".rstrip()
    assert (kind in ADVICE) is (kind not in UNCLEAR)
    assert said.values == {"tool": "read", "count": 3, "error": kind}


@table("pattern", ALIKE)
@table("kind", KINDS)
def test_a_refusal_always_has_a_next_step(pattern: str, kind: ErrorType) -> None:
    denial = denial_of(pattern, "read", 6, 0, "denied", kind)
    assert "a result has shown" in denial.hint
    assert denial.values["error"] == kind


@table("pattern", WORDS)
@table("kind", KINDS)
def test_nothing_is_left_to_be_filled_in_and_no_cause_is_denied(pattern: str, kind: ErrorType) -> None:
    for said in (nudge_of(pattern, "a$count", 3, 2, kind).hint, denial_of(pattern, "t", 3, 2, "denied", kind).message):
        assert "$" not in said.replace("a$count", "")
        assert "  " not in said
        assert "not the cause" not in said
        assert all(len(sentence.split()) <= 25 for sentence in re.split(r"[.:;] ", said))


def heard(clock: Any, *calls: tuple[str, dict[str, Any], Any]) -> str:
    """
    What is hinted at with the last of *calls*.
    """
    one = Policy([Loops()]).session("s", clock=clock)
    for tool, arguments, value in calls:
        one.begin_turn()
        decision = one.decide(tool, arguments)
        one.complete(decision, value)
    return " ".join(hint for _, hint in decision.nudges)


@table(
    ("failure", "advice"),
    [
        (ValueError("unknown column `usr`: invalid argument"), "Check the arguments"),
        (FileNotFoundError("no such file"), "Find out what is there"),
        (RuntimeError("file content exceeds the maximum of 25000 tokens"), "Ask for less at once"),
        (RuntimeError("HTTP 401: invalid api key"), "credentials"),
        (PermissionError("permission denied"), "allowed"),
        (RuntimeError("File has not been read yet. Read it first."), "Do first"),
        (RuntimeError("HTTP 409: already exists"), "present state"),
        (IsADirectoryError("is a directory"), "Check the path"),
        (ConnectionRefusedError("connection refused"), "may be down"),
        (RuntimeError("exit code 1"), ""),
        (SyntaxError("invalid syntax"), ""),
        (RuntimeError("it did not work"), ""),
    ],
)
def test_the_advice_follows_from_the_error(failure: Exception, advice: str, clock: Any) -> None:
    said = heard(clock, *[("do_it", {"n": f"v{n}w"}, failure) for n in range(4)])
    fact = f"The last 3 calls of `do_it` failed alike: {diagnosis_of(failure)[0]}."
    assert said.startswith(fact)
    assert advice in said
    assert advice or said == fact


def test_other_messages_in_json_are_no_failures_alike(clock: Any) -> None:
    errors = ["the id is no good", "the services are too many", "the endpoint is off", "the name has a flaw"]
    for form in ('{{"error": "{}"}}', "{{'message': '{}'}}", '{{"error": "", "response": "{{\'message\': \'{}\'}}"}}'):
        calls = [("ask", {"n": f"v{n}w"}, ValueError(form.format(error))) for n, error in enumerate(errors)]
        assert heard(clock, *calls) == ""
        calls = [("ask", {"n": f"v{n}w"}, ValueError(form.format(errors[0]))) for n in range(4)]
        assert "failed alike" in heard(clock, *calls)


def test_two_calls_with_another_pattern_are_not_said_to_be_labelled_anew(clock: Any) -> None:
    said = heard(clock, *[("find", {"q": q}, ["a"]) for q in ("get(x)", "get x", "get: x")])
    assert "only" not in said


def test_a_find_of_the_present_turn_breaks_the_row(clock: Any) -> None:
    one = Policy([Loops()]).session("s", clock=clock)
    for n in range(5):
        one.begin_turn()
        one.complete(one.decide("grep", {"pattern": f"v{n}w"}), "No matches found")
    one.begin_turn()
    found = one.decide("grep", {"pattern": "main"})
    assert found.nudges
    one.complete(found, "main.py:1")
    assert one.decide("grep", {"pattern": "core"}).nudges == ()


FAILURES = [None, FileNotFoundError("no such file"), ValueError("url must be absolute"), PermissionError("denied")]
STEPS = st.tuples(st.sampled_from(["s__a", "s__b"]), st.sampled_from([1, 1, 1, 0, 2, 3]), st.booleans())


@settings(max_examples=10 * settings().max_examples)
@given(st.lists(STEPS, min_size=4, max_size=30))
def test_the_calls_that_a_nudge_tells_of_were_what_it_says(steps: list[tuple[str, int, bool]]) -> None:
    one = Policy([Loops(final_after=None)]).session("s", clock=lambda: 1_800_000_000.0)
    ran: list[tuple[str, str]] = []
    one.begin_turn()
    for number, (tool, failure, turn) in enumerate(steps):
        if turn:
            one.begin_turn()
        decision = one.decide(tool, {"n": f"v{number}w"})
        for code, hint in decision.nudges:
            if (found := re.match(r"The last (\d+) calls\D+failed alike: (\w+)\.", hint)) is not None:
                own = [kind for name, kind in ran if code == "loops.sibling_errors" or name == tool]
                assert own[-int(found[1]) :] == [found[2]] * int(found[1])
        if decision.allowed:
            value = FAILURES[failure]
            one.complete(decision, f"found {number}" if value is None else value)
            ran.append((tool, "ok" if value is None else diagnosis_of(value)[0]))


MISSED = LookupError("no such order")
DULL: dict[str, tuple[list[tuple[str, dict[str, Any], Any]], dict[str, Any], Any]] = {
    "same_error": ([("get", {"id": n}, MISSED) for n in (11, 12, 13)], {"id": 14}, MISSED),
    "empty": ([("get", {"q": f"word{n}"}, "No matches found") for n in range(5)], {"q": "other"}, "No matches found"),
    "reworded": ([("get", {"q": f"quiet inn in Rome {word}"}, []) for word in "abc"], {"q": "quiet inn in Rome d"}, []),
    "identical": ([("get", {"q": "a"}, {"at": 1})] * 2, {"q": "a"}, {"at": 1}),
}


@table("pattern", DULL)
def test_that_a_loop_brings_nothing_is_not_said_beside_something_new(pattern: str, clock: Any) -> None:
    before, arguments, dull = DULL[pattern]
    for value, told in ((dull, True), ({"found": "news"}, False), (RuntimeError("HTTP 500"), True)):
        one = Policy([Loops(identical={"nudge": 1, "deny": None})]).session("s", clock=clock)
        for call in before:
            one.begin_turn()
            one.complete(one.decide(call[0], call[1]), call[2])
        one.begin_turn()
        decision = one.decide("get", arguments)
        assert decision.nudges
        hint = one.complete(decision, value).next_action_hint or ""
        assert (decision.nudges[0][1] in hint) is told


def test_the_hint_of_another_guard_is_said_beside_something_new(clock: Any) -> None:
    said = [("loops.empty", "The last 4 calls came back empty."), ("tone.loud", "Speak low.")]
    one = Policy([]).session("s", clock=clock)
    one.complete(one.decide("get", {}), "news")
    state = one._read(lambda state, now: state)
    news = Pending(1, 1, "1", "get", 7, 0, 0, 0, 0, 0, False, state.window[-1])
    assert hints_of(said, news, state, ("loops.",)) == ["Speak low."]
    assert hints_of(said, None, state, ("loops.",)) == [hint for _, hint in said]
