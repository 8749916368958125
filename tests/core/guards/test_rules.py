"""
Rules that people write: refused, asked, limited by a sum, in an order.
"""

import asyncio
import json
import sys
import threading

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Budget, Policy, PolicyError, Rules, Tool
from guardrails.core.values.cel import _library
from guardrails.offline.replay.run import judge_files
from guardrails.offline.transcripts.files import inputs
from guardrails.sinks import MemorySink
from tests.core.guards.calls import gives, ok
from tests.replaying import replay
from tests.tables import table


pytest.importorskip("cel_expr_python")

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
FAILS = PermissionError("no")
LOST = TimeoutError("slow")

REFUNDS: dict[str, Any] = {"tools": "refund", "limit": {"sum": "args.amount", "max": 500, "per": "1h"}}


def session(clock: Any, *rules: Any, **settings: Any) -> Any:
    scopes = {one["limit"]["scope"] for one in rules if "scope" in one.get("limit", {})} - {"session", "global"}
    policy = Policy([Rules(rules=rules)], **settings)
    return policy.session("s", clock=clock, scopes=dict.fromkeys(scopes, "u1"))


def told(session: Any, tool: str, execute: Any = ok, **arguments: Any) -> Any:
    """
    The code of a call, or None if it ran and worked.
    """
    envelope = session.call(tool, arguments, execute)
    return envelope.code or (None if envelope.ok else envelope.status)


# Twelve rules that users asked for in public, each as a rule and what it does. Where they asked: owner/repository#number.
ASKED: list[tuple[str, dict[str, Any], list[tuple[str, dict[str, Any], str | None]]]] = [
    (
        "google/adk-python#6613: reimbursements above $100 are a manager's decision, whatever the model says",
        {"tools": "reimburse", "when": "args.amount > 100", "ask": "a manager decides above 100"},
        [("reimburse", {"amount": 100}, None), ("reimburse", {"amount": 100.01}, "approve.pending")],
    ),
    (
        "MicrosoftDocs/semantic-kernel-docs#434: transfers under $1,000 run, larger ones ask",
        {"tools": "transfer", "when": "args.amount >= 1000", "ask": "large"},
        [("transfer", {"amount": 999.5}, None), ("transfer", {"amount": 1000}, "approve.pending")],
    ),
    (
        "pydantic/pydantic-ai#1420: tool A only once tool B has run",
        {"tools": "tool_a", "after": "tool_b"},
        [("tool_a", {}, "rules.after"), ("tool_b", {}, None), ("tool_a", {}, None)],
    ),
    (
        "antoinezambelli/forge#2: an edit only of a file that was read",
        {"tools": "edit_file", "after": "read_file", "same": "path"},
        [
            ("read_file", {"path": "a"}, None),
            ("edit_file", {"path": "b"}, "rules.after"),
            ("edit_file", {"path": "a"}, None),
        ],
    ),
    (
        "agentscope-ai/agentscope#1415: a read before a write, with any of two tools",
        {"tools": ["write", "append"], "after": ["read", "stat"], "same": "file.path"},
        [
            ("append", {"file": {"path": "x"}}, "rules.after"),
            ("stat", {"file": {"path": "x"}}, None),
            ("write", {"file": {"path": "x"}}, None),
        ],
    ),
    (
        "jordigilh/kubernaut#1307: discovery only after an investigation was started",
        {"tools": "kubernaut_discover_*", "after": "kubernaut_start_*"},
        [
            ("kubernaut_discover_workflows", {}, "rules.after"),
            ("kubernaut_start_investigation", {}, None),
            ("kubernaut_discover_workflows", {}, None),
        ],
    ),
    (
        "agno-agi/agno#8838: at most three searches of the web in a run",
        {"tools": "web_search", "limit": {"max": 3}},
        [("web_search", {"q": n}, None) for n in range(3)]
        + [("web_search", {"q": 3}, "rules.limit"), ("read", {}, None)],
    ),
    (
        "getlago/lago-agent-toolkit#41: what an agent may pay in all",
        {"tools": "create_payment", "limit": {"sum": "double(args.amount_cents) / 100.0", "max": 50}},
        [
            ("create_payment", {"amount_cents": 3000}, None),
            ("create_payment", {"amount_cents": 2500}, "rules.limit"),
            ("create_payment", {"amount_cents": 2000}, None),
        ],
    ),
    (
        "UnitOneAI/SecuritySkills#2616: a spend gate for each user and day",
        {
            "tools": "buy_*",
            "limit": {"sum": "args.usd", "max": 20, "per": "day", "zone": "Europe/Berlin", "scope": "user"},
        },
        [
            ("buy_ad", {"usd": 15}, None),
            ("buy_domain", {"usd": 5.01}, "user.rules.limit"),
            ("buy_ad", {"usd": 5}, None),
        ],
    ),
    (
        "Wh1isper/mcp-email-server#138: mail to known people only, copies too",
        {
            "tools": "send_email",
            "when": '!(args.recipients + (has(args.cc) ? args.cc : [])).all(a, a.endsWith("@example.org"))',
            "deny": "only inside",
        },
        [
            ("send_email", {"recipients": ["a@example.org"]}, None),
            ("send_email", {"recipients": ["a@example.org"], "cc": ["b@evil.test"]}, "rules.deny"),
        ],
    ),
    (
        "googleapis/gcloud-mcp#213: a cluster is never deleted",
        {
            "tools": "run_gcloud_command",
            "when": 'args.args.exists(w, w == "delete") && "clusters" in args.args',
            "deny": "no",
        },
        [
            ("run_gcloud_command", {"args": ["container", "clusters", "list"]}, None),
            ("run_gcloud_command", {"args": ["container", "clusters", "delete", "prod"]}, "rules.deny"),
        ],
    ),
    (
        "pydantic/pydantic-ai#8569: an order is paid back once",
        {"tools": "refund", "after_not": "refund", "same": "order_id"},
        [
            ("refund", {"order_id": 1}, None),
            ("refund", {"order_id": 2}, None),
            ("refund", {"order_id": 1}, "rules.after_not"),
        ],
    ),
]


@table("wish, rule, calls", ASKED)
def test_a_rule_that_users_asked_for_does_what_they_wished(clock: Any, wish: str, rule: Any, calls: Any) -> None:
    made = session(clock, rule)
    assert [told(made, tool, **arguments) for tool, arguments, _ in calls] == [code for *_, code in calls]


def test_a_denial_says_the_figures_and_what_is_left(clock: Any) -> None:
    made = session(clock, REFUNDS)
    told(made, "refund", amount=450)
    refused = made.call("refund", {"amount": 100.5}, ok)
    figures = "may use 500 of `args.amount` within 1h: 450 are used, 50 are left, and this call is for 100.5"
    assert refused.code == "rules.limit"
    assert figures in made.decide("refund", {"amount": 100.5}).denial.message
    assert refused.next_action_hint == "Stay within 50, or go on without it and say so."


@table(
    "name, execute, code",
    [
        ("a refund that failed gives back", gives(FAILS), None),
        ("one whose end nobody knows does not", gives(LOST), "rules.limit"),
        ("nor does one behind a gateway that failed", gives("HTTP/1.1 502 Bad Gateway"), "rules.limit"),
        ("one that worked does not", ok, "rules.limit"),
    ],
)
def test_a_sum_is_settled_by_the_end_of_the_call(clock: Any, name: str, execute: Any, code: str | None) -> None:
    made = session(clock, REFUNDS)
    told(made, "refund", execute, amount=300)
    assert told(made, "refund", amount=201) == code


def test_a_call_that_never_ran_gives_back_what_it_held_and_one_that_is_lost_does_not(clock: Any) -> None:
    made = session(clock, REFUNDS, tools=[Tool(name="refund", timeout=5)])
    held = made.decide("refund", {"amount": 400})
    assert told(made, "refund", amount=101) == "rules.limit"
    made.calls.release(held)
    made.decide("refund", {"amount": 400})
    clock.advance(600)
    assert told(made, "refund", amount=101) == "rules.limit"


def test_a_person_is_asked_and_the_answer_holds(clock: Any) -> None:
    made = session(clock, {"tools": "refund", "when": "args.amount > 100", "ask": "above 100"}, REFUNDS)
    for amount, yes in ((300, True), (200, False)):
        asked = made.call("refund", {"amount": amount}, ok)
        (waits,) = made.pending()
        assert (asked.code, waits.reason) == ("approve.pending", "above 100")
        (made.approve if yes else made.refuse)(waits)
        assert told(made, "refund", amount=amount) == (None if yes else "approve.refused")
    # What was refused holds nothing any more.
    assert [told(made, "refund", amount=amount) for amount in (100, 99, 2)] == [None, None, "rules.limit"]


@table(
    "limit, gaps, ran",
    [
        ({"max": 2, "per": "1h"}, [0, 1_800, 1_799, 1, 1_800], [True, True, False, True, True]),
        ({"max": 1, "per": "day", "zone": "UTC"}, [0, DAY - 28_801, 1, 1], [True, False, True, False]),
        ({"max": 1, "per": "day", "zone": "Asia/Tokyo"}, [0, 0, 7 * HOUR - 1, 1], [True, False, False, True]),
        ({"max": 1, "per": "month"}, [0, 16 * DAY, DAY], [True, False, True]),
        ({"max": 1, "per": "week"}, [0, 2 * DAY, 20 * HOUR], [True, False, True]),
        ({"max": 1}, [0, 400 * DAY], [True, False]),
    ],
)
def test_a_period_slides_or_is_of_the_calendar(clock: Any, limit: Any, gaps: list[float], ran: list[bool]) -> None:
    # The clock stands at 2027-01-15 08:00 UTC, a Friday.
    clock.now = 1_800_000_000.0
    made, found = session(clock, {"tools": "t", "limit": limit}), []
    for number, gap in enumerate(gaps):
        clock.advance(gap)
        found.append(told(made, "t", n=number) is None)
    assert found == ran


def test_of_rules_that_object_the_denial_comes_before_the_question_and_that_before_the_nudge(clock: Any) -> None:
    rules = [
        {"tools": "t", action: action, "when": f"args.n >= {least}"}
        for least, action in enumerate(("nudge", "ask", "deny"))
    ]
    made = session(clock, *rules)
    assert [told(made, "t", n=n) for n in (-1, 1, 2)] == [None, "approve.pending", "rules.deny"]
    assert made.call("t", {"n": 0}, ok).next_action_hint == "nudge"


@table("on_error, code", [("deny", "call.error"), ("allow", None)])
@pytest.mark.parametrize("anything", [{}, {"amount": "ten"}])
def test_an_expression_without_a_value_is_decided_by_on_error(
    clock: Any, anything: Any, on_error: Any, code: Any
) -> None:
    assert told(session(clock, REFUNDS, on_error=on_error), "refund", **anything) == code


def test_an_amount_beyond_all_numbers_is_beyond_the_limit(clock: Any) -> None:
    assert [told(session(clock, REFUNDS), "refund", amount=amount) for amount in (2**70, 1e300)] == ["rules.limit"] * 2


def test_a_whole_number_is_a_double_where_the_schema_says_number(clock: Any) -> None:
    rule = {"tools": "t", "when": "args.amount * 1.5 > 3 && args.n % 2 == 0", "deny": "no"}
    schema = {"type": "object", "properties": {"amount": {"type": "number"}, "n": {"type": "integer"}}}
    made = session(clock, rule, tools=[Tool(name="t", parameters=schema)])
    assert [told(made, "t", amount=amount, n=2) for amount in (2, 3, 2.5)] == [None, "rules.deny", "rules.deny"]


@table(
    "rule, says",
    [
        ({}, "missing key `tools`"),
        ({"tools": "t"}, "a rule has one of deny, ask, nudge, limit, after or after_not, got none"),
        ({"tools": "t", "deny": "x", "ask": "y"}, "got `deny` and `ask`"),
        ({"tools": "t", "deny": "x", "same": "y"}, "`same` goes with `after` and `after_not`"),
        ({"tools": "t", "limit": {"max": 1, "zone": "Mars"}}, "no time zone `Mars` is known here"),
        ({"tools": "t", "limit": {"max": 1, "per": 0}}, "a period is longer than 0s"),
        ({"tools": "t", "limit": {"max": 1, "scope": "The user"}}, "`The user` is no scope"),
        ({"tools": "t", "when": "not args.x", "deny": "x"}, "CEL writes `!` for `not`"),
        ({"tools": "t", "when": "amount > 3", "deny": "x"}, "an argument is `args.amount`"),
        ({"tools": "t", "when": "'x'", "deny": "x"}, "`'x'` is not true or false, but string"),
    ],
)
def test_a_rule_with_a_mistake_is_told(rule: Any, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy([Rules(rules=(rule,))])
    assert says in str(caught.value)


def test_a_policy_in_code_is_held_to_the_parameters_of_its_tools() -> None:
    def refund(order_id: str, amount: float, note: str | None = None) -> str:
        return "ok"

    rules: Any = [{"tools": "refund", "when": "args.amount > 100 && args.note == 'x'", "ask": "x"}]
    assert Policy([Rules(rules=tuple(rules))], tools=[refund])
    rules += [{"tools": "ref*", "when": "args.order > 3 || args.order_id > 3", "deny": "x"}]
    with pytest.raises(PolicyError) as caught:
        Policy([Rules(rules=tuple(rules))], tools=[refund])
    assert [one.partition("`refund`: ")[2] for one in caught.value.mistakes] == [
        "no argument `order`, did you mean `order_id`?",
        "found no matching overload for '_>_' applied to '(string, int)'",
    ]


def test_a_sum_takes_decimal_numbers_and_no_other_text(clock: Any) -> None:
    made = session(clock, REFUNDS)
    assert told(made, "refund", amount=Decimal("300.50")) is None
    assert told(made, "refund", amount=Decimal("199.51")) == "rules.limit"
    assert told(made, "refund", amount=Decimal("199.50")) is None
    for text in ("", "x", "NaN", "1e999999999", "1_0", " 1", "9" * 99):
        assert told(made, "refund", amount=text) == "call.error"


def test_not_before_a_call_is_read_as_cel_writes_it(clock: Any) -> None:
    when = 'not args.to.endsWith("not a(b)") && tool == "send"'
    one = session(clock, {"tools": "send", "when": when, "deny": "only inside"})
    assert (told(one, "send", to="not a(b)"), told(one, "send", to="x")) == (None, "rules.deny")


def test_a_missing_value_is_the_same_as_no_other_and_equal_maps_are_the_same(clock: Any) -> None:
    one = session(clock, {"tools": "pay", "after": "look", "same": "order"})
    codes = [told(one, "look"), told(one, "pay"), told(one, "pay", order="None"), told(one, "pay", order=None)]
    assert codes == [None, *["rules.after"] * 3]
    assert told(one, "look", order={"a": 1, "b": 2}) is None
    assert told(one, "pay", order={"b": 2, "a": 1}) is None


def test_of_too_many_open_calls_none_is_a_permission(clock: Any) -> None:
    made = session(clock, {"tools": "ship", "after": "pay"}, {"tools": "exec", "after_not": "pay"})
    for n in range(1_002):
        made.decide("pay", {"n": n}, claim=True)
    assert (told(made, "ship"), told(made, "exec")) == ("rules.after", "rules.after_not")


FILE = """version: 1
rules:
  - {tools: refund, when: 'args.amont > 100', deny: x}
  - {tools: refund, limit: {sum: args.to, max: 5}}
  - tools: ref*
    when: |
      args.amount > 3 &&
        args.to > 5
    deny: x
  - {tools: other, when: args.amont > 100, deny: x}
  - {tools: "*", when: 'has(args.url) && args.url.startsWith("http:")', deny: x}
  - {tools: refund, when: 'has(args.to) && args.amount > 3 && args.tags.exists(t, t == "a b")', deny: x}
tools:
  - match: refund
    parameters:
      type: object
      properties: {to: {type: string}, amount: {type: number}, tags: {type: array, items: {type: string}}}
"""


def test_a_file_is_held_to_the_schemas_of_its_tools_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(FILE)
    with pytest.raises(PolicyError) as caught:
        Policy.load(file)
    assert [one.split("\n")[0].removeprefix(f"{file}:") for one in caught.value.mistakes] == [
        "3:33: rules.0.when: no argument `amont`, did you mean `amount`?",
        "4:34: rules.1.limit.sum: `args.to` is not a number, but string",
        "8:19: rules.2.when: found no matching overload for '_>_' applied to '(string, int)'",
    ]


def test_without_the_package_a_file_with_an_expression_is_a_mistake_and_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    _library.cache_clear()
    file = tmp_path / "p.yaml"
    for text in ("limit: {max: 1}", "when: 'true', deny: x"):
        file.write_text(f"version: 1\nrules:\n- {{tools: t, {text}}}\n")
        if "limit" in text:
            assert told(Policy.load(file).session("s"), "t") is None
            continue
        with pytest.raises(PolicyError, match=r"p\.yaml:3:3: rules\.0: a rule with `when` or `sum` needs"):
            Policy.load(file)


def test_rules_of_files_that_build_on_each_other_add_up(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\nrules:\n- {tools: a, deny: base}\n")
    rules = {"p.yaml": "[{tools: b, deny: own}]", "q.yaml": "!replace [{tools: b, deny: own}]"}
    for name, text in rules.items():
        (tmp_path / name).write_text(f"version: 1\nextends: ./base.yaml\nrules: {text}\n")
    made = [Policy.load(tmp_path / name).session("s") for name in rules]
    assert [[told(one, tool) for tool in "ab"] for one in made] == [["rules.deny"] * 2, [None, "rules.deny"]]


def test_what_was_counted_stays_if_only_the_limit_changes(tmp_path: Path, clock: Any) -> None:
    limits, found = (2, 3, 1), []
    store = Policy([]).session("x").ledger.store
    for limit in limits:
        rule: Any = {"tools": "t", "limit": {"max": limit}}
        policy = Policy([Rules(rules=(rule,))])
        made = policy.session("s", store=store, clock=clock)
        found.append([told(made, "t", n=n) is None for n in range(2)])
    assert found == [[True, True], [True, False], [False, False]]


def test_a_family_counts_together(clock: Any) -> None:
    made = session(clock, {"tools": "t", "limit": {"max": 2}}, {"tools": "exec", "after_not": "read_secret"})
    with made.child("a") as child:
        assert [told(one, "t", n=n) for n, one in enumerate((made, child, child, made))] == [
            None,
            None,
            *["rules.limit"] * 2,
        ]
        told(child, "read_secret")
    assert told(made, "exec") == "rules.after_not"


def test_the_same_value_is_the_same_in_a_child_and_in_a_replay(clock: Any) -> None:
    records = MemorySink()
    rule: Any = {"tools": "pay", "after_not": "read", "same": "n"}
    policy = Policy([Rules(rules=(rule,))])
    parent = policy.session("s", records=records, clock=clock)
    parent.calls.suspend(parent.decide("read", {}))
    told(parent, "read", n=2.0)
    with parent.child("kid") as child:
        codes = [told(child, "pay", n=1), told(child, "pay", n=2), told(child, "pay")]
    assert codes == [None, "rules.after_not", None]
    assert [one.decided for one in replay(policy.chain, records.records) if not one.same] == []


@table("timed, refused", [(True, ["rules.after", "rules.limit"]), (False, ["rules.after"])])
def test_recorded_calls_are_judged_by_rules_as_far_as_they_have_times(
    tmp_path: Path, timed: bool, refused: Any
) -> None:
    rules = [{"tools": "look", "limit": {"max": 1, "per": "1h"}}, {"tools": "pay", "after": "look", "same": "order"}]
    (tmp_path / "p.yaml").write_text(f"version: 1\nrules: {json.dumps(rules)}\n")
    calls = [("look", 1), ("pay", 1), ("pay", 2), ("look", 3)]
    lines = [{"session_id": "s", "tool": tool, "arguments": {"order": order}, "result": "ok"} for tool, order in calls]
    times = [{"ts": 1.8e9 + n} if timed else {} for n in range(len(lines))]
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(a | b) + "\n" for a, b in zip(lines, times, strict=True)))
    (judged,) = judge_files([Policy.load(tmp_path / "p.yaml")], inputs([tmp_path / "calls.jsonl"]))
    assert sorted(judged.total.denied) == refused
    assert ("rules.timed" in judged.not_judged) != timed


def test_records_of_sessions_that_share_a_rule_are_decided_again_exactly(clock: Any) -> None:
    rules: Any = ({**REFUNDS, "limit": {**REFUNDS["limit"], "scope": "user"}}, {"tools": "refund", "after": "look"})
    budget = Budget(max_calls=35, warn_at=0.5, per="day")
    policy, records = Policy([Rules(rules=rules), budget], scopes={"user": [budget]}), MemorySink()
    made = [policy.session(name, clock=clock, scopes={"user": "u"}, records=records) for name in "abc"]
    for number in range(60):
        tool, end = ("look", "refund", "refund")[number % 3], ("ok", FAILS, "ok", LOST)[number % 4]
        told(made[number % 7 % 3], tool, gives(end), amount=5 * number, n=number)
        clock.advance(60)
    again = replay(policy.chain, records.records, scopes=policy.scopes)
    assert len({one.decided for one in again}) >= 3
    assert [one.decided for one in again] == [one.recorded for one in again]


# Laws


steps = st.lists(
    st.tuples(
        st.sampled_from(["begin", "ok", "fail", "lose", "release", "wait"]),
        st.integers(0, 5),
        st.sampled_from([0.1, 1, 2.5, 30, 1e-7, -4]),
    ),
    max_size=40,
)


@given(steps, st.sampled_from(["session", "user", "global"]), st.sampled_from(["60s", "day", None]))
def test_a_sum_is_never_over_whatever_happens_to_calls(story: Any, scope: str, per: Any) -> None:
    """
    What may have been paid within any period is at most the limit.
    """
    now, paid, held = [1_800_000_000.0], list[tuple[float, float]](), dict[Any, Any]()
    made = session(
        lambda: now[0], {"tools": "pay", "limit": {"sum": "args.amount", "max": 5, "scope": scope, "per": per}}
    )
    for name, place, amount in story:
        if name == "wait":
            now[0] += amount * 10 if amount > 0 else 0
        elif name == "begin":
            one = made.decide("pay", {"amount": amount, "place": place, "n": len(paid)}, id=f"c{len(paid)}")
            if one.allowed:
                held.setdefault(place, []).append(one)
                paid.append((now[0], max(0, amount)))
                one.at = len(paid) - 1
        elif held.get(place):
            one = held[place].pop()
            if name == "release":
                made.calls.release(one)
            else:
                made.complete(one, {"ok": "done", "fail": FAILS, "lose": LOST}[name])
            if name in ("fail", "release") and now[0] - paid[one.at][0] < 600:
                paid[one.at] = paid[one.at][0], 0
        start = {"60s": now[0] - 60, "day": now[0] - now[0] % DAY, None: 0}[per]
        assert sum(amount for at, amount in paid if at > start) <= 5 + 1e-9


orders = st.lists(
    st.tuples(
        st.sampled_from(["look", "pay", "wait"]), st.sampled_from("abc"), st.sampled_from(["ok", "fail", "lose"])
    ),
    max_size=30,
)


@given(orders)
def test_an_order_is_never_wrong_in_any_history(story: Any) -> None:
    now, looked, maybe = [1_800_000_000.0], dict[str, float](), dict[str, float]()
    same = {"same": "order", "within": "60s"}
    made = session(
        lambda: now[0], {"tools": "pay", "after": "look", **same}, {"tools": "undo", "after_not": "look", **same}
    )
    for n, (name, order, end) in enumerate(story):
        if name == "wait":
            now[0] += 25
        elif name == "pay":
            right = now[0] - looked.get(order, 0) < 60
            assert (told(made, "pay", order=order, n=n) is None) == right
            assert (told(made, "undo", order=order, n=n) is None) == (now[0] - maybe.get(order, 0) >= 60)
        else:
            told(made, "look", gives({"ok": "order", "fail": FAILS, "lose": LOST}[end]), order=order, n=n)
            if end == "ok":
                looked[order] = now[0]
            if end != "fail":
                maybe[order] = now[0]


def test_what_is_too_much_to_be_remembered_is_never_a_permission(clock: Any) -> None:
    same = {"same": "order"}
    made = session(clock, {"tools": "pay", "after": "look", **same}, {"tools": "undo", "after_not": "look", **same})
    for n in range(1_100):
        told(made, "look", order=n)
    assert [told(made, "pay", order=n) for n in (0, 1_099)] == ["rules.after", None]
    assert [told(made, "undo", order=n) for n in (0, 1_099)] == ["rules.after_not"] * 2


def together(work: Callable[[int], object], many: int = 8) -> None:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(many)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


@table("scope", ["session", "user"])
def test_a_sum_is_never_over_under_threads_and_tasks(clock: Any, scope: str) -> None:
    rule = {"tools": "pay", "limit": {"sum": "args.amount", "max": 10, "scope": scope}}
    made, ran = session(clock, rule), list[int]()

    def pay(tool: str, arguments: Any) -> str:
        ran.append(arguments["amount"])
        return "ok"

    together(lambda n: [told(made, "pay", pay, amount=1 + n % 2, n=k, of=n) for k in range(6)])
    assert 9 <= sum(ran) <= 10

    async def tasks() -> None:
        again = session(clock, rule)

        async def paid(tool: str, arguments: Any) -> str:
            await asyncio.sleep(0)
            return pay(tool, arguments)

        ran.clear()
        await asyncio.gather(*[again.acall("pay", {"amount": 3, "n": n}, paid) for n in range(20)])

    asyncio.run(tasks())
    assert sum(ran) == 9
