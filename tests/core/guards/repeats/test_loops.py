"""
Patterns that bring nothing, and the honest work beside them (MISSION A12).
"""

from typing import Any

from guardrails import Duplicates, Loops, Policy, Retryable, Tool
from guardrails.core.engine.plan import Rule
from guardrails.core.records.replay import replay
from guardrails.sinks import MemorySink
from tests.tables import table


Call = tuple[str, dict[str, Any], Any]


def gives(value: Any) -> Any:
    def execute(tool: str, arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return execute


def said(session: Any, *calls: Call) -> list[str | None]:
    """
    The code of what is said of each call, made in a turn of its own: of a nudge with a mark.
    """
    heard = []
    for tool, arguments, value in calls:
        session.begin_turn()
        decision = session.decide(tool, arguments)
        nudge = f"nudge {decision.nudges[0][0]}" if decision.nudges else None
        heard.append(decision.code or nudge)
        if decision.allowed:
            session.complete(decision, value)
    return heard


def session(clock: Any, *guards: Any, **settings: Any) -> Any:
    return Policy(guards or (Loops(),), **settings).session("s", clock=clock)


def missing(path: str) -> Exception:
    return FileNotFoundError(f"no such file: {path}")


QUERIES = [f"cheap hotel in shibuya tokyo {word}" for word in ("now", "may", "please", "price", "near", "best", "hot")]

LOOPS: list[tuple[str, list[Call], str, int | None, int]] = [
    ("identical", [("search", {"q": "inn"}, ["a"])] * 3, "identical", None, 3),
    ("two looks", [("read", {"of": n % 2}, f"text {n % 2}") for n in range(8)], "identical", None, 5),
    ("cycle", [("edit", {"to": n % 2}, "ok") for n in range(8)], "cycle", 5, 7),
    (
        "cycle with changes",
        [("edit", {"to": 1}, "ok"), ("test", {}, "1 failed"), ("edit", {"to": 2}, "ok"), ("test", {}, "2 failed")] * 4,
        "cycle",
        9,
        13,
    ),
    ("same error", [("open", {"path": f"p{n}"}, missing(f"p{n}")) for n in range(7)], "same_error", 4, 7),
    (
        "sibling errors",
        [(f"crm__get_{name}", {}, ConnectionRefusedError("refused: crm:443")) for name in "abcdefg"],
        "sibling_errors",
        4,
        7,
    ),
    (
        "unknown tool",
        [("browse", {"n": n}, RuntimeError("Unknown tool: browse")) for n in range(4)],
        "unknown_tool",
        3,
        4,
    ),
    (
        "volatile argument",
        [("rates", {"base": "EUR", "asked_at": f"2026-11-22T10:{n:02d}:00Z"}, {"USD": 1.08}) for n in range(6)],
        "volatile_argument",
        None,
        0,
    ),
    ("reworded", [("search_hotels", {"query": query}, []) for query in QUERIES], "reworded", 4, 7),
    ("empty", [("grep", {"pattern": word * 3}, "No matches found") for word in "abcdefghijk"], "empty", 5, 11),
]


@table(("calls", "pattern", "nudged", "denied"), [row[1:] for row in LOOPS])
def test_a12_a_pattern_is_nudged_first_and_denied_later(
    calls: list[Call], pattern: str, nudged: int | None, denied: int, clock: Any
) -> None:
    heard = said(
        session(clock, Loops(), tools=[Tool(name=name, read_only=True) for name in ("search_hotels", "read")]), *calls
    )
    code = f"loops.{pattern}"
    assert code in heard
    if denied:
        assert heard.index(code) + 1 == denied
    if nudged:
        assert heard.index(f"nudge {code}") + 1 == nudged
    first = next(at for at, one in enumerate(heard) if one)
    assert first >= 2, "nothing is said of a single repeat"


HONEST: dict[str, list[Call]] = {
    "a result that changes": [("snapshot", {}, f"page {n}") for n in range(12)],
    "chunks": [("read", {"offset": n * 100}, f"lines {n}") for n in range(12)],
    "edits and the same failure": [
        ("test", {}, RuntimeError("1 failed: test_total")) if n % 2 else ("edit", {"file": f"f{n}"}, "ok")
        for n in range(16)
    ],
    "edits and green": [
        call for n in range(8) for call in (("edit", {"file": f"f{n}"}, "ok"), ("test", {}, "5 passed"))
    ],
    "batch edits": [("edit", {"file": f"f{n}", "old": "foo", "new": "bar"}, "ok") for n in range(15)],
    "a retry that works": [*[("rates", {}, TimeoutError("timed out"))] * 2, ("rates", {}, {"USD": 1.08})],
    "similar searches with news": [("search_hotels", {"query": query}, [query]) for query in QUERIES],
    "records of one form": [("create", {"name": f"n{n}", "role": "guest"}, {"ok": True}) for n in range(12)],
}


@table("name", HONEST)
def test_a12_honest_work_is_left_alone(name: str, clock: Any) -> None:
    assert not any(said(session(clock), *HONEST[name]))


@table("name", ["reworded", "empty"])
def test_a_look_at_something_else_keeps_a_run_that_brings_nothing_from_being_refused(name: str, clock: Any) -> None:
    """
    It may have shown why nothing is found.
    """
    [run] = [calls for pattern, calls, *_ in LOOPS if pattern == name]
    tools = [Tool(name=tool, read_only=True) for tool in ("search_hotels", "grep", "read")]
    assert said(session(clock, tools=tools), *run)[-1] == f"loops.{name}"
    broken = [*run[:-1], ("read", {}, "text"), run[-1]]
    assert said(session(clock, tools=tools), *broken)[-1] == f"nudge loops.{name}"


def test_calls_of_one_turn_are_no_loop(clock: Any) -> None:
    one = session(clock)
    one.begin_turn(calls=8)
    for n in range(8):
        assert one.call("open", {"path": f"p{n}"}, gives(missing("x"))).code is None
        assert one.call("grep", {"pattern": f"p{n}"}, gives([])).code is None
    assert said(one, ("open", {"path": "q"}, "text")) == [None]


def test_a_tool_that_waits_is_hinted_at_and_never_blocked(clock: Any) -> None:
    heard = said(session(clock), *[("job_status", {"id": 7}, "pending")] * 9)
    assert heard == [None] * 3 + ["nudge loops.wait"] * 6


def test_a_declared_polling_tool_is_hinted_at_too(clock: Any) -> None:
    made = session(clock, Loops(wait={"nudge": 1}), tools=[Tool(name="ask", polling=True)])
    assert said(made, *[("ask", {}, "no")] * 3) == [None, "nudge loops.wait", "nudge loops.wait"]


def test_our_own_denials_do_not_count(clock: Any) -> None:
    one = session(clock, Loops(final_after=None))
    assert said(one, *[("search", {"q": "a"}, [1])] * 6) == [None, None] + ["loops.identical"] * 4
    assert said(one, ("search", {"q": "b"}, [2])) == [None]


def test_a_session_ends_only_after_refusals_were_ignored(clock: Any) -> None:
    one = session(clock, Loops(final_after=3))
    said(one, *[("search", {"q": "a"}, [1])] * 6)
    assert not one.exhausted
    envelope = [one.begin_turn(), one.call("search", {"q": "a"}, gives([1]))][1]
    assert one.exhausted
    assert (envelope.status, envelope.code) == ("limit_reached", "loops.identical")


def test_a_call_that_runs_between_refusals_keeps_the_session(clock: Any) -> None:
    one = session(clock, Loops(final_after=1))
    for n in range(6):
        said(one, ("search", {"q": "a"}, [1]), ("look", {"n": n}, n))
    assert not one.exhausted


def test_five_refusals_of_one_turn_are_one(clock: Any) -> None:
    one = session(clock, Loops(final_after=2))
    said(one, *[("search", {"q": "a"}, [1])] * 2)
    one.begin_turn(calls=5)
    for _ in range(5):
        one.call("search", {"q": "a"}, gives([1]))
    assert not one.exhausted


def test_first_refusals_of_several_calls_are_none_that_were_ignored(clock: Any) -> None:
    one = session(clock, Loops(final_after=1))
    calls: list[Call] = [("search", {"q": n}, [n]) for n in range(8)]
    said(one, *calls, *calls)
    assert said(one, *calls) == ["loops.cycle", *["loops.identical"] * 7] or not one.exhausted
    assert not one.exhausted


def test_where_no_turns_are_told_no_session_ends(clock: Any) -> None:
    """
    That is left to `denials`.
    """
    one = session(clock, Loops(final_after=1))
    for _ in range(9):
        one.call("search", {"q": "a"}, gives([1]))
    assert not one.exhausted


def test_the_earlier_result_comes_with_the_refusal(clock: Any) -> None:
    one = session(clock)
    said(one, *[("search", {"q": "a"}, [1])] * 2)
    one.begin_turn()
    assert b"previous_result" in one.call("search", {"q": "a"}, gives([1])).to_json().encode()


def test_a_nudge_is_read_in_the_envelope_of_the_call(clock: Any) -> None:
    one = session(clock, Loops(identical={"nudge": 1}))
    said(one, ("search", {"q": "a"}, [1]))
    one.begin_turn()
    envelope = one.call("search", {"q": "a"}, gives([1]))
    assert envelope.ok
    assert "gave the same result" in (envelope.next_action_hint or "")


def test_each_digit_of_a_result_is_news(clock: Any) -> None:
    counts: list[Call] = [("look", {}, f"{n} failed") for n in range(10, 16)]
    assert not any(said(session(clock), *counts))


def test_another_tool_in_between_gives_an_error_one_more_chance(clock: Any) -> None:
    one = session(clock)
    said(one, *[("open", {"path": f"p{n}"}, missing(f"p{n}")) for n in range(6)])
    assert said(one, ("list_files", {}, ["q"]), ("open", {"path": "r"}, "text")) == [None, "nudge loops.same_error"]


def test_thresholds_are_set_for_single_tools(clock: Any) -> None:
    policy = Policy([Loops()], rules=[Rule(match="search", guards={"loops": {"identical_deny": 4}})])
    one = policy.session("s", clock=clock)
    assert said(one, *[("search", {}, [1])] * 5)[-2:] == [None, "loops.identical"]
    assert said(one, *[("other", {}, [1])] * 3)[-1] == "loops.identical"


def test_retries_that_the_last_envelope_allowed_are_let_through(clock: Any) -> None:
    one = session(clock, Retryable(max_retries=3, backoff=0.001), Loops())
    heard = []
    for _ in range(7):
        clock.advance(60)
        heard += said(one, ("rates", {}, TimeoutError("timed out")))
    assert heard[:4] == [None] * 4
    assert "loops.identical" in heard


@table("story", [row[1] for row in LOOPS])
def test_records_decide_every_loop_again(story: list[Call], clock: Any) -> None:
    policy, sink = Policy([Duplicates(rule="evidence"), Loops()]), MemorySink()
    with policy.session("s", clock=clock, records=sink) as one:
        said(one, *story)
    replayed = list(replay(policy.chain, sink.records))
    assert len(replayed) == len(story)
    assert all(call.same for call in replayed)


@table("arguments", [{}, {"a": None}, {"a": "\ud800"}, {"a": b"\x00\xff"}, {"a": object()}, {"a": "x" * 10**6}])
@table("value", [None, "", b"\x00\xff" * 10, "\ud800", {"a": object()}, "y" * 10**6])
def test_no_arguments_and_no_result_make_it_fail(arguments: Any, value: Any, clock: Any) -> None:
    one = session(clock)
    for _ in range(4):
        one.begin_turn()
        decision = one.decide("tool", arguments)
        assert decision.errors == ()
        if decision.allowed:
            one.complete(decision, value)


NOT_FOUND = missing("a.toml")
ORDER = Tool(name="order", read_only=True)


@table(
    "failure",
    [NOT_FOUND, TypeError("not a number: `x`"), ValueError("url must be absolute"), RuntimeError("Unknown tool: open")],
)
def test_a_call_that_cannot_work_is_refused_at_once(failure: Exception, clock: Any) -> None:
    one = session(clock)
    assert said(one, *[("open", {"path": "a"}, failure)] * 3) == [None, *["loops.unrepaired"] * 2]


@table(
    "failure",
    [TimeoutError("timed out"), ConnectionRefusedError("refused"), PermissionError("no"), RuntimeError("exit code 1")],
)
def test_a_call_that_may_work_the_next_time_is_not(failure: Exception, clock: Any) -> None:
    assert said(session(clock), *[("open", {"path": "a"}, failure)] * 2) == [None, None]


@table(
    ("between", "code"),
    [
        (("write", {"path": "a"}, "ok"), None),
        (("write", {"path": "a"}, TimeoutError("timed out")), None),
        (("write", {"path": "/"}, NOT_FOUND), None),
        (("write", {"path": "/"}, RuntimeError("Unknown tool: write")), "loops.unrepaired"),
        (("order", {"id": 1}, "sent"), "loops.unrepaired"),
    ],
)
def test_work_that_may_have_helped_lets_a_failed_call_run_again(between: Call, code: str | None, clock: Any) -> None:
    one = session(clock, tools=[ORDER, Tool(name="open", read_only=True)])
    heard = said(one, ("open", {"path": "a"}, NOT_FOUND), between, ("open", {"path": "a"}, "text"))
    assert (heard[0], heard[2]) == (None, code)


STALE = RuntimeError("Ref e12 not found in the current page snapshot")
ABSENT = RuntimeError("HTTP 404: no order A1")


@table(
    ("calls", "heard"),
    [
        ([("click", {"ref": "e12"}, STALE), ("order", {}, "[e12] Pay"), ("click", {"ref": "e12"}, "ok")], [None] * 3),
        (
            [
                ("edit", {"old": "x"}, ValueError("the text to replace is not there")),
                ("order", {}, "y"),
                ("edit", {"old": "x"}, "ok"),
            ],
            [None, None, "loops.unrepaired"],
        ),
        ([("create", {}, {"id": "A1"}), ("get", {"id": "A1"}, ABSENT), ("get", {"id": "A1"}, "new")], [None] * 3),
        (
            [("create", {}, {"id": "A1"}), *[("get", {"id": "A1"}, ABSENT)] * 3],
            [None, None, None, "loops.identical"],
        ),
        (
            [
                ("run", {"code": "f()"}, NameError("f")),
                ("run", {"code": "def f(): 0"}, ""),
                ("run", {"code": "f()"}, 0),
            ],
            [None] * 3,
        ),
    ],
)
def test_what_may_have_helped_a_failed_call_lets_it_run_again(
    calls: list[Call], heard: list[str | None], clock: Any
) -> None:
    assert said(session(clock, tools=[ORDER]), *calls) == heard


def test_what_was_made_long_before_does_not_help_a_failed_call(clock: Any) -> None:
    one = session(clock)
    assert said(one, ("create", {}, {"id": "A1"})) == [None]
    clock.advance(61)
    assert said(one, *[("get", {"id": "A1"}, ABSENT)] * 2) == [None, "loops.unrepaired"]


@table(
    ("failed", "failure"),
    [("import x", ModuleNotFoundError("No module named 'x'")), ("x.y", AttributeError("x has no attribute `y`"))],
)
def test_a_call_of_one_turn_may_have_been_over_before_another_of_it(
    failed: str, failure: Exception, clock: Any
) -> None:
    one = session(clock)
    one.begin_turn(calls=2)
    both = [one.decide("shell", {"do": "pip install -U x"}), one.decide("python", {"code": failed})]
    one.complete(both[1], failure)
    one.complete(both[0], "installed")
    assert said(one, ("python", {"code": failed}, "ok")) == [None]


WAITING = {"state": "pending"}
SLEEPY = {"command": "sleep 60; gh run view 7"}


@table(
    ("tool", "arguments", "value"),
    [("get_export", {"id": 9}, WAITING), ("bash", SLEEPY, "7 of 9"), ("check_build", {"id": 9}, "7 of 9")],
)
def test_who_waits_is_recognised_and_never_blocked(tool: str, arguments: Any, value: Any, clock: Any) -> None:
    one = session(clock, Duplicates(rule="evidence", window=20), Loops())
    heard = said(one, *[(tool, arguments, value)] * 9)
    assert heard == [None] * 3 + ["nudge loops.wait"] * 6


@table(
    "command",
    [
        "kubectl -n shop get pods",
        "sudo docker compose -f x.yml ps | grep web",
        "gh -R o/r run view 7",
        ["aws", "--region", "r", "ec2", "describe-instances"],
    ],
)
@table("value", ["7 of 9", missing("web")])
def test_a_command_that_looks_elsewhere_polls_wherever_its_verb_stands(command: Any, value: Any, clock: Any) -> None:
    one = session(clock, Duplicates(rule="evidence", window=20), Loops())
    heard = said(one, *[("bash", {"command": command}, value)] * 9)
    assert heard == [None] * 3 + ["nudge loops.wait"] * 6


def test_a_command_that_polls_with_the_time_of_day_polls(clock: Any) -> None:
    calls: list[Call] = [
        ("bash", {"command": f"curl -s https://h/jobs/7?now=180000000{n}"}, "queued: 3") for n in range(9)
    ]
    assert said(session(clock), *calls) == [None] * 9


@table("command", ["kubectl -n status apply -f x", "git -C app status", "pytest -k wait", "cat status"])
def test_an_ordinary_command_made_again_and_again_is_refused(command: str, clock: Any) -> None:
    one = session(clock, Duplicates(rule="evidence", window=20), Loops())
    assert None not in said(one, *[("bash", {"command": command}, "as before")] * 5)[2:]


def test_what_waits_in_a_cycle_makes_it_none(clock: Any) -> None:
    calls: list[Call] = [("get_export", {"id": 9}, WAITING), ("beat", {}, "ok")] * 9
    assert "loops.cycle" not in said(session(clock, Duplicates(rule="evidence", window=20), Loops()), *calls)


def test_whoever_is_pleased_to_find_nothing_may_look_on(clock: Any) -> None:
    assert not any(said(session(clock), *[("lint_file", {"path": f"src/f{n}.py"}, []) for n in range(14)]))


def test_a_service_that_is_down_is_told_and_left_to_retries(clock: Any) -> None:
    down = ConnectionRefusedError("refused: crm:443")
    heard = said(session(clock), *[("crm_get", {"id": n}, down) for n in range(9)])
    assert heard == [None] * 3 + ["nudge loops.same_error"] * 6


@table("news", [0, 1])
def test_an_acting_tool_is_in_no_loop_while_a_look_shows_something_new(news: int, clock: Any) -> None:
    one = session(clock, Duplicates(rule="evidence", window=20), Loops(), tools=[ORDER])
    heard = []
    for n in range(5):
        heard += said(one, ("click", {"ref": "next"}, "clicked"), ("order", {}, f"page {n * news}"))
    assert any(heard) is (news == 0)


def test_a_beat_or_a_line_of_a_log_is_not_the_one_before(clock: Any) -> None:
    beats = [("beat", {"at": f"2026-11-22T10:{n:02d}:00Z", "load": 1}, {"ok": True}) for n in range(8)]
    assert not any(said(session(clock), *beats))


def test_what_still_runs_may_help_a_failed_call(clock: Any) -> None:
    call = ("python", {"code": "x.y"}, AttributeError("x has no attribute `y`"))
    one = session(clock)
    one.begin_turn()
    build = one.decide("make", {})
    assert said(one, call, call) == [None, None]
    one.complete(build, "built")


LETTER = "Dear all, the report of the third quarter is ready. Revenue rose by four percent again."


def documents(tool: str = "save_note", *, text: Any = lambda n: LETTER, **also: Any) -> list[Call]:
    return [(tool, {"title": f"Report v{n}", "body": text(n), **also}, "saved") for n in range(12)]


def churn(
    *, made: Any = lambda n: {"path": f"tmp{n}"}, name: str = "tmp%d", said: str = "created", between: bool = False
) -> list[Call]:
    return [
        call
        for n in range(10)
        for call in (
            ("create_file", made(n), said.replace("#", str(n))),
            *([("measure", {"n": n}, n)] if between else []),
            ("delete_file", {"path": name % n}, "deleted"),
        )
    ]


@table(
    ("loop", "told"),
    [
        (documents(), "nudge loops.volatile_argument"),
        (documents("upload_file", pinned=True), "nudge loops.volatile_argument"),
        (churn(), "nudge loops.cycle"),
        (churn(made=lambda _: {"size": "s"}, name="srv-%d", said="srv-#"), "nudge loops.cycle"),
    ],
)
def test_work_that_is_in_vain_under_ever_new_names_is_told_of(loop: list[Call], told: str, clock: Any) -> None:
    heard = said(session(clock, Duplicates(rule="evidence", window=20), Loops()), *loop)
    assert heard.index(told) < 12
    assert {*heard} == {None, told}


@table(
    "honest",
    [
        documents(text=lambda n: f"{LETTER} {n}"),
        documents(text=lambda _: "MIT License ..."),
        documents("send_mail"),
        documents("edit_file"),
        documents("search_notes", text=lambda n: f"{LETTER} {n}"),
        documents("add_comment", issue=4),
        documents()[:6],
        churn(between=True),
        churn(name="old/b%d"),
        churn(name="old/b%d", said="new/b#"),
        churn()[:8],
    ],
)
def test_work_under_new_names_that_is_none_is_left_alone(honest: list[Call], clock: Any) -> None:
    assert not any(said(session(clock, Duplicates(rule="evidence", window=20), Loops()), *honest))


def test_everything_through_one_shell_is_no_loop_while_it_works(clock: Any) -> None:
    one = session(clock, Duplicates(rule="evidence", window=20), Loops())
    for n in range(8):
        edit = ("bash", {"command": f"sed -i s/a{n}/b/ f{n}.py"}, "")
        assert said(one, edit, ("bash", {"command": "pytest -q"}, "5 passed")) == [None] * 2


def test_somebody_else_has_a_minute_to_remove_the_cause_of_a_failure(clock: Any) -> None:
    one = session(clock)
    assert said(one, ("open", {"path": "a"}, NOT_FOUND)) == [None]
    clock.advance(60)
    assert said(one, ("open", {"path": "a"}, "text")) == ["loops.unrepaired"]
    clock.advance(0.001)
    assert said(one, ("open", {"path": "a"}, "text")) == [None]


def test_without_a_limit_nobody_else_does(clock: Any) -> None:
    one = session(clock, Loops(settled_for=None))
    said(one, ("open", {"path": "a"}, NOT_FOUND))
    clock.advance(10**6)
    assert said(one, ("open", {"path": "a"}, "text")) == ["loops.unrepaired"]


def test_a_clock_that_goes_back_does_not_make_a_failure_older(clock: Any) -> None:
    one = session(clock)
    said(one, ("open", {"path": "a"}, NOT_FOUND))
    clock.advance(-3_600)
    assert said(one, ("open", {"path": "a"}, "text")) == ["loops.unrepaired"]


def test_a_retry_that_was_allowed_is_no_repeat_of_a_failure(clock: Any) -> None:
    one = session(clock, Retryable(), Loops(), tools=[Tool(name="open", retryable=True)])
    said(one, ("open", {"path": "a"}, IndexError("no such row")))
    clock.advance(59)
    assert said(one, ("open", {"path": "a"}, "text")) == [None]


def test_the_same_call_in_one_turn_is_no_repeat_of_its_failure(clock: Any) -> None:
    one = session(clock)
    one.begin_turn()
    for _ in range(3):
        decision = one.decide("open", {"path": "a"})
        assert decision.allowed
        one.complete(decision, NOT_FOUND)


def test_who_looks_again_at_once_is_told_so(clock: Any) -> None:
    one = session(clock, tools=[ORDER])
    packed, shipped = (("order", {"id": 1}, state) for state in ("packed", "shipped"))
    heard = said(one, packed, ("ship", {"id": 1}, "ok"), shipped, shipped)
    assert heard == [None, None, None, "nudge loops.reread"]


def test_who_looks_again_may_be_refused(clock: Any) -> None:
    one = session(clock, Loops(reread={"deny": 1}), tools=[ORDER])
    look = ("order", {"id": 1}, "sent")
    assert said(one, look, look) == [None, "loops.reread"]
    clock.advance(61)
    assert said(one, look) == [None]


def test_who_asks_for_the_next_is_not(clock: Any) -> None:
    assert said(session(clock, tools=[ORDER]), *[("order", {}, n) for n in range(3)]) == [None] * 3


@table("declared", [{}, {"read_only": True, "polling": True}])
def test_only_who_merely_looks_is_told(declared: dict[str, Any], clock: Any) -> None:
    one = session(clock, tools=[Tool(name="order", **declared)])
    assert said(one, *[("order", {"id": 1}, "sent")] * 2) == [None, None]


def test_a_cycle_stays_refused_at_whichever_of_its_calls_it_goes_on(clock: Any) -> None:
    one = session(clock, Loops(final_after=None))
    lap = [("move", {"to": n}, f"room {n}") for n in range(3)]
    assert "loops.cycle" in said(one, *lap * 4)
    assert [decision in ("loops.cycle", "loops.identical") for decision in said(one, *lap)] == [True] * 3
    assert said(one, ("look", {"at": 9}, "a door"), lap[0]) == [None, None]


@table(
    ("answer", "told"),
    [
        ({"ok": False}, None),
        ({"success": False, "message": "no luck"}, None),
        ({"status": 404, "message": "not found"}, None),
        ('{"status": 404, "message": "not found"}', None),
        ({"error": "no such user"}, "nudge loops.{}"),
        ({"error": "out of range"}, "loops.{}"),
        (LookupError("no such user"), "loops.{}"),
    ],
)
def test_what_may_be_the_answer_to_each_of_many_questions_is_a_scan(answer: Any, told: str | None, clock: Any) -> None:
    alone = [("get_user", {"name": f"{n}{n}"}, answer) for n in range(30)]
    assert said(session(clock), *alone)[6] == (told and told.format("same_error"))
    two = [(tool, {"name": f"{n}{n}"}, answer) for n in range(15) for tool in ("get_user", "get_page")]
    assert said(session(clock), *two)[6] == (told and told.format("sibling_errors"))


@table(
    ("answer", "refused"),
    [
        ({"status": 404, "message": "not found"}, 3),
        ({"status": 404, "error": "Not Found"}, 3),
        ({"content": [{"type": "text", "text": "no such job"}], "isError": True}, 2),
        (LookupError("no such job"), 2),
    ],
)
def test_a_thing_that_an_object_says_is_not_there_yet_is_looked_at_once_more(
    answer: Any, refused: int, clock: Any
) -> None:
    heard = said(session(clock), *[("get_job", {"id": 7}, answer)] * 3)
    assert heard.index("loops.unrepaired" if refused == 2 else "loops.identical") == refused - 1
