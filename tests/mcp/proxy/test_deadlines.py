"""
What is due later.
"""

import gc
import threading

from functools import partial

from guardrails.mcp.proxy.deadlines import Deadlines


class Call:
    """
    Something that is waited for.
    """


def test_those_whose_time_is_up_are_told_in_their_order() -> None:
    deadlines, over = Deadlines(), threading.Event()
    told: list[str] = []
    calls = {name: Call() for name in ("late", "soon", "last")}

    def tell(name: str, _: Call) -> None:
        told.append(name)
        if name == "last":
            over.set()

    for seconds, name in ((0.05, "late"), (0.01, "soon"), (0.1, "last")):
        deadlines.add(seconds, calls[name], partial(tell, name))
    assert over.wait(20)
    assert told == ["soon", "late", "last"]


def test_one_that_is_gone_is_told_nothing() -> None:
    deadlines, over = Deadlines(), threading.Event()
    told: list[object] = []
    call, other = Call(), Call()
    deadlines.add(0.05, call, told.append)
    del call
    gc.collect()
    deadlines.add(0.1, other, lambda _: over.set())
    assert over.wait(20)
    assert not told
