"""
The works that packages are compared by: what they find in peers whose faults are known, in ours, and in the tables.
"""

from benchmarks.peers import works
from benchmarks.peers.drivers import DRIVERS, Limits


OURS = "toolcall-guardrails"


def test_our_own_figures_hold() -> None:
    ours = DRIVERS[OURS]
    calls, money = Limits(calls=10), Limits(usd=1.0, price=0.10)
    assert works.parallel(ours, calls) == works.parallel(ours, money) == works.family(OURS) == 10
    assert (works.sequential(ours, calls, fails=True), works.sequential(ours, Limits(usd=0.30, price=0.10))) == (10, 3)
    assert set(works.odd(ours).values()) == {"ran"}
    assert set(works.forms(ours).values()) == {"right"}
    assert works.after_a_refusal(ours) == "runs"
    told = works.told(ours)
    assert len(told["refused"]) <= 2 < 50 <= told["caught"]
