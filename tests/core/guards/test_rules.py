"""
Rules that people write: refused, asked, limited by a sum, in an order.
"""

import asyncio
import json
import sys

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
from tests.conftest import together
from tests.core.guards.calls import gives, ok
from tests.replaying import replay
from tests.tables import table


pytest.importorskip("cel_expr_python")

DAY = 86_400.0
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


def test_a_call_that_never_ran_gives_back_what_it_held_and_one_that_is_lost_does_not(clock: Any) -> None:
    made = session(clock, REFUNDS, tools=[Tool(name="refund", timeout=5)])
    held = made.decide("refund", {"amount": 400})
    assert told(made, "refund", amount=101) == "rules.limit"
    made.calls.release(held)
    made.decide("refund", {"amount": 400})
    clock.advance(600)
    assert told(made, "refund", amount=101) == "rules.limit"


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
        "at 1:33: found no matching overload for '_>_' applied to '(string, int)'",
    ]


def test_a_sum_takes_decimal_numbers(clock: Any) -> None:
    made = session(clock, REFUNDS)
    assert told(made, "refund", amount=Decimal("300.50")) is None
    assert told(made, "refund", amount=Decimal("199.51")) == "rules.limit"
    assert told(made, "refund", amount=Decimal("199.50")) is None


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
    store, found = Policy([]).session("x").ledger.store, []
    for limit in (2, 3, 1):
        rule: Any = {"tools": "t", "limit": {"max": limit}}
        policy = Policy([Rules(rules=(rule,))])
        made = policy.session("s", store=store, clock=clock)
        found.append([told(made, "t", n=n) is None for n in range(2)])
    assert found == [[True, True], [True, False], [False, False]]


def test_a_family_counts_together(clock: Any) -> None:
    made = session(clock, {"tools": "t", "limit": {"max": 2}}, {"tools": "exec", "after_not": "read_secret"})
    with made.child("a") as child:
        codes = [told(one, "t", n=n) for n, one in enumerate((made, child, child, made))]
        assert codes == [None, None, *["rules.limit"] * 2]
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


def test_a_rule_has_a_part_in_no_call_but_those_that_it_judges_or_counts() -> None:
    rule: Any = {"tools": "pay", "after_not": "read"}
    plans = map(Policy([Rules(rules=(rule,))]).chain.plan, ("pay", "read", "other"))
    assert [[len(one.checks), len(one.admits), len(one.settles)] for one in plans] == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]


# Laws


of = st.sampled_from
kinds = ["begin", "ok", "fail", "lose", "release", "wait"]
steps = st.lists(st.tuples(of(kinds), st.integers(0, 5), of([0.1, 1, 2.5, 30, 1e-7, -4])), max_size=40)


@given(steps, of(["session", "user", "global"]), of(["60s", "day", None]))
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


orders = st.lists(st.tuples(of(["look", "pay", "wait"]), of("abc"), of(["ok", "fail", "lose"])), max_size=30)


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


@table("scope", ["session", "user"])
def test_a_sum_is_never_over_under_threads_and_tasks(clock: Any, scope: str) -> None:
    rule = {"tools": "pay", "limit": {"sum": "args.amount", "max": 10, "scope": scope}}
    made, ran = session(clock, rule), list[int]()

    def pay(tool: str, arguments: Any) -> str:
        ran.append(arguments["amount"])
        return "ok"

    together(lambda n: [told(made, "pay", pay, amount=1 + n % 2, n=k, of=n) for k in range(6)], 8)
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
