"""
Who goes on after failures with a value that a result has shown since is in no loop; who guesses is.
"""

import json

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Loops, Policy, Retryable
from guardrails.core.records.replay import replay
from guardrails.core.state.failing import BITS, MOST_TOOLS, SPARED_AFTER, Failing, brings_new, note_ended, told
from guardrails.core.state.packing import pack, unpack
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool_call import tool_call
from guardrails.sinks import MemorySink
from tests.tables import table


Call = tuple[str, dict[str, Any], Any]


def session(clock: Any, **settings: Any) -> Any:
    return Policy([Loops(final_after=None, **settings)]).session("s", clock=clock)


def said(one: Any, *calls: Call) -> list[str | None]:
    """
    What is said of each call, made in a turn of its own: the name of the pattern, in capitals where it is refused.
    """
    heard: list[str | None] = []
    for tool, arguments, value in calls:
        one.begin_turn()
        decision = one.decide(tool, arguments)
        code = decision.code or (decision.nudges[0][0] if decision.nudges else None)
        name = None if code is None else code.removeprefix("loops.")
        heard.append(name if name is None or decision.allowed else name.upper())
        if decision.allowed:
            one.complete(decision, value)
    return heard


def column(name: str) -> Exception:
    return ValueError(f"unknown column `{name}`")


def guessed(*names: str) -> list[Call]:
    return [("run_sql", {"show": name, "of": "people"}, column(name)) for name in names]


def gone(path: str) -> Exception:
    return FileNotFoundError(f"no such file: {path}")


GUESSES = guessed("usr", "login", "nick", "handle")
ORDERS = [("get_order", {"id": f"#W{n}"}, KeyError(f"no order #W{n}")) for n in (10, 11, 12)]
PATHS = [("open_it", {"path": f"src/{name}.py"}, gone(f"src/{name}.py")) for name in ("main", "app", "core")]
LARGE = [
    ("load", {"file": "log.txt", "lines": n}, RuntimeError("file too large to read at once")) for n in (99, 88, 77)
]
REQUIRED = [
    ("patch", {"path": "a", "to": n}, TypeError(f"validation error: '{field}' is required"))
    for n, field in ((71, "lines"), (72, "lines"), (73, "lines"))
]

REPAIRS: dict[str, list[Call]] = {
    "a column that the schema shows": [
        *GUESSES[:3],
        ("describe_table", {"of": "people"}, {"columns": ["person_id", "full_name"]}),
        ("run_sql", {"show": "full_name", "of": "people"}, [["Bo"]]),
    ],
    "a column that the error suggests": [
        *GUESSES[:2],
        ("run_sql", {"show": "nick", "of": "people"}, ValueError("unknown column `nick`, did you mean `alias`?")),
        ("run_sql", {"show": "alias", "of": "people"}, [["Bo"]]),
    ],
    "an argument that the error asks for": [*REQUIRED, ("patch", {"path": "a", "lines": [[1, 2]]}, "ok")],
    "an order that the user has": [
        *ORDERS,
        ("get_user", {"name": "Bo"}, {"orders": ["#W71", "#W72"]}),
        ("get_order", {"id": "#W71"}, {"total": 7}),
    ],
    "a path of known words": [
        *PATHS,
        ("list_files", {"under": "src"}, ["src/app/main.py"]),
        ("open_it", {"path": "src/app/main.py"}, "import core"),
    ],
    "a name within a sentence without spaces": [
        *[("find_shop", {"name": name}, LookupError("no such shop")) for name in ("北京店", "上海店", "广州店")],
        ("read_page", {}, "我们在深圳、成都有新店。"),
        ("find_shop", {"name": "成都"}, {"open": True}),
    ],
    "a name that JSON within JSON writes by numbers": [
        *[("find_shop", {"name": name}, LookupError("no such shop")) for name in ("北京", "上海", "广州")],
        ("list_shops", {}, {"text": json.dumps(json.dumps({"shops": ["深圳"]}))}),
        ("find_shop", {"name": "深圳"}, {"open": True}),
    ],
}


@table("name", REPAIRS)
def test_a_call_with_a_value_that_a_result_has_shown_passes_in_silence(name: str, clock: Any) -> None:
    assert said(session(clock, unknown_tool_nudge=2), *REPAIRS[name])[-1] is None


NOTHING_NEW: dict[str, list[Call]] = {
    "guessed columns": guessed("usr", "login", "nick", "handle", "who", "owner", "member"),
    "guessed orders": [("get_order", {"id": f"#W{n}"}, KeyError(f"no order #W{n}")) for n in range(10, 17)],
    "errors that repeat the arguments": [
        ("find", {"name": f"n{n}x"}, LookupError(f"n{n}x: no such name, tried n{n}x")) for n in range(7)
    ],
    "errors that repeat the last arguments": [
        ("find", {"name": f"n{n}x"}, LookupError(f"no such name; before: n{n - 1}x")) for n in range(1, 8)
    ],
    "failures in JSON": [
        ("find", {"name": f"n{n}x"}, ValueError(f'{{"error": "no such name", "name": "n{n}x"}}')) for n in range(7)
    ],
    "long arguments": [("run", {"code": f"x = {n}77\n" * 50}, RuntimeError("exit code 1")) for n in range(1, 8)],
}


@table("name", NOTHING_NEW)
def test_guesses_are_hinted_at_from_the_fourth_on_and_refused_from_the_seventh(name: str, clock: Any) -> None:
    assert said(session(clock), *NOTHING_NEW[name]) == [None] * 3 + ["same_error"] * 3 + ["SAME_ERROR"]


def test_a_success_ends_what_was_tried_and_shown(clock: Any) -> None:
    one = session(clock)
    said(one, *GUESSES[:2], ("run_sql", {"show": "1"}, 1))
    assert one._read(lambda state, now: state.failing) == {}
    assert said(one, *GUESSES) == [None] * 3 + ["same_error"]


def test_after_four_refusals_one_call_with_arguments_of_its_own_is_let_through(clock: Any) -> None:
    one = session(clock)
    said(one, *guessed(*"abcdef"))
    heard = said(one, *guessed(*[f"g{n}" for n in range(10)]))
    assert heard == [*["SAME_ERROR"] * SPARED_AFTER, "same_error"] * 2


def siblings(kind: Exception, *ids: Any) -> list[Call]:
    return [(("shop__get_order", "shop__cancel_order")[n % 2], {"id": one}, kind) for n, one in enumerate(ids)]


@table("several", [2, 3, 5])
def test_of_several_tools_that_fail_alike_one_call_is_let_through_after_four_refusals(several: int, clock: Any) -> None:
    one = Policy.load("default").session("s", clock=clock)
    down = RuntimeError("HTTP 401: invalid token")
    calls = [(f"shop__get_{'abcde'[n % several]}", {"id": f"x{n}"}, down) for n in range(21)]
    refused = ["SIBLING_ERRORS"] * SPARED_AFTER
    assert said(one, *calls)[6:] == [*refused, "sibling_errors", *refused, "sibling_errors", *refused, "sibling_errors"]
    assert not one.exhausted


@table(
    ("kind", "heard"),
    [
        (LookupError("no such order"), None),
        (TypeError("validation error: `id` is required"), None),
        (RuntimeError("HTTP 401: invalid token"), "SIBLING_ERRORS"),
        (ConnectionRefusedError("connection refused"), "SIBLING_ERRORS"),
    ],
)
def test_a_tool_that_was_not_called_is_refused_only_for_what_its_server_may_have(
    kind: Exception, heard: str | None, clock: Any
) -> None:
    one = session(clock)
    said(one, *siblings(kind, *[f"x{n}" for n in range(6)]))
    assert said(one, ("shop__find_user", {"name": "Bo"}, {"orders": ["W71"]})) == [heard]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 30)), max_size=40))
def test_what_is_kept_is_bounded_and_survives_packing(story: list[tuple[str, bool, int]]) -> None:
    state = SessionState()
    for seq, (tool, failed, size) in enumerate(story, 1):
        call = tool_call(tool, {"n": seq}, "1", None)
        what = told(call, " ".join(f"{tool}{seq}x{n}" for n in range(size**2)).encode(), failed=failed)
        note_ended(state.failing, tool, seq, failed=failed, what=what, oldest=max(1, seq - 9))
        assert len(state.failing) <= MOST_TOOLS
    again = unpack(pack(state)).failing
    for tool, one in state.failing.items():
        assert (again[tool].seq, again[tool].tried, again[tool].shown) == (one.seq, one.tried, one.shown)
    assert len(pack(state)) < 600 + MOST_TOOLS * 2 * (BITS // 8) * 5 // 4


@given(st.lists(st.text(min_size=2, max_size=20), min_size=1, max_size=20), st.data())
def test_what_was_shown_and_not_tried_is_found_again(shown: list[str], data: st.DataObject) -> None:
    """
    Whatever the values are made of; that others are taken for shown is rare, and so is not found here.
    """
    words = [word for word in shown if word.isalnum()]
    value = data.draw(st.sampled_from(words)) if words else "x1"
    failing: dict[str, Failing] = {}
    note_ended(
        failing, "a", 1, failed=True, what=told(tool_call("a", {"q": "tried0"}, "1", None), b"", failed=True), oldest=1
    )
    result = Policy([]).session("s").call("b", {}, lambda *_: [*shown, "x1"]).rendered
    assert result is not None
    note_ended(
        failing, "b", 2, failed=False, what=told(tool_call("b", {}, "2", None), result.payload, failed=False), oldest=1
    )
    assert brings_new(tool_call("a", {"q": value}, "3", None), failing.values())


@table("name", [*REPAIRS, "refused"])
def test_a_record_without_results_is_replayed_exactly(name: str, clock: Any) -> None:
    story = REPAIRS.get(name) or guessed(*[f"g{n}" for n in range(14)])
    policy, sink = Policy([Loops(final_after=None), Retryable()]), MemorySink()
    with policy.session("s", clock=clock, records=sink) as one:
        said(one, *story)
    records = [{**record, "result": None, "error_message": None, "arguments": None} for record in sink.records]
    for record in records:
        if record["event"] == "call":
            record["erased"] = ["arguments"]
    replayed = list(replay(policy.chain, records))
    assert len(replayed) == len(story)
    assert all(call.same for call in replayed)
