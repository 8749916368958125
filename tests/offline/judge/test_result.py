"""
The figures of a judgement.
"""

import json

from collections import Counter

from guardrails.offline.judge.result import Judgement, Stop, Tally, add


ONE = Tally("one", sessions=1, calls=4, denied=Counter(a=2), wrong=Counter(a=1), saved_tokens=3)
TWO = Tally("two", sessions=2, calls=6, denied=Counter(a=1, b=1), observed=Counter(c=5), wrong_observed=Counter(c=1))


def test_the_total_is_the_sum_of_the_sources() -> None:
    total = Judgement("p", [ONE, TWO]).total
    assert (total.sessions, total.calls, total.denied) == (3, 10, {"a": 3, "b": 1})
    assert (total.denials, total.wrong_per_1000, total.wrong_observed_per_1000) == (4, 100, 100)


def test_adding_leaves_what_is_added_as_it_is() -> None:
    whole = Tally("whole")
    add(whole, ONE)
    add(whole, ONE)
    assert ONE.denied == {"a": 2}
    assert whole.denied == {"a": 4}


def test_a_tally_of_no_calls_has_no_rates() -> None:
    assert Tally("none").wrong_per_1000 == Tally("none").wrong_observed_per_1000 == 0


def test_a_judgement_as_json_has_the_figures_and_not_each_stop() -> None:
    stop = Stop("one", "s", 0, "t", "deny", "a", None)
    said = Judgement("p", [ONE, TWO], {"rate": "no times"}, [stop], {"t": ONE}, broken_lines=2).to_dict()
    assert json.loads(json.dumps(said)) == said
    assert said["total"]["denied"] == {"a": 3, "b": 1}
    assert [source["source"] for source in said["sources"]] == ["one", "two"]
    assert said["not_judged"] == {"rate": "no times"}
    assert "stops" not in said
