"""
A first policy as a file: limits with room above what was seen, and what the figures say of each tool as comments.

Nothing is declared of a tool that nobody has confirmed.
"""

import glob

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from guardrails.core.tool import Tool
from guardrails.core.values.names import LOOKS, TOKEN, own_name
from guardrails.core.values.types import MICRO
from guardrails.offline.figures import one_line, plural
from guardrails.policy.policy import Policy

from .quality import Quality
from .suggestions import Suggestion, written
from .tally import Tally


LEAST_CALLS: Final = 1_000
"""Calls of a session that are never refused: what the policy `default` has."""
MARGIN: Final = 3
"""Times the longest session that was seen."""
ONCE: Final = frozenset(
    "book buy charge deposit issue mint order pay publish purchase refund reply send submit transfer withdraw".split()  # noqa: SIM905
)
"""First words of a name that say that a second time is too much: a payment, a message."""


def starter(
    quality: Quality | None, suggestions: Sequence[Suggestion], policy: Policy, *, steps: tuple[str, str], mode: str
) -> str:
    """
    The text of the file. The figures of recorded calls are *quality*, if there are some. It extends *policy*. The
    commands that check and judge the file are *steps*.
    """
    check, judge = map(one_line, steps)
    seen, calls, longest = "", LEAST_CALLS, "the longest honest ones have several hundred"
    if quality is not None:
        parts = plural(quality.calls, "call"), plural(quality.sessions, "session"), plural(len(quality.tallies), "tool")
        seen = " from {} of {}, {}".format(*parts)
        calls = max(LEAST_CALLS, MARGIN * quality.longest)
        longest = f"the longest session seen had {plural(quality.longest, 'call')}"
    text, example = Path(__file__).with_name("starter.txt").read_text(encoding="utf-8").split("# EXAMPLE\n")
    text = text.format(seen=seen, check=check, judge=judge, base=policy.name, mode=mode, calls=calls, longest=longest)
    return text + (example if quality is None else "\n".join([*_tools(quality, suggestions, policy), ""]))


def _tools(quality: Quality, suggestions: Sequence[Suggestion], policy: Policy) -> Iterator[str]:
    known = [tally for tally in quality.tallies.values() if tally.tool.isprintable()]
    supported = {one.tool: one for one in suggestions}
    for tally in sorted(known, key=lambda tally: (-tally.calls, tally.tool)):
        tool, failed = policy.chain.plan(tally.tool).tool, f", {tally.failed:,} failed" if tally.failed else ""
        taken = f"; `{policy.name}` takes it for read-only by its name" if tool.read_only else ""
        yield f"  # {one_line(tally.tool)}: {plural(tally.calls, 'call')} in {plural(tally.sessions, 'session')}{failed}{taken}"
        proposed = dict(_guesses(tally, tool))
        if (one := supported.get(tally.tool)) is not None:
            proposed |= {key: (value, one.evidence[key]) for key, value in one.settings.items()}
        if proposed:
            yield f"  # - match: {written(glob.escape(tally.tool))}"
        for key, (value, evidence) in proposed.items():
            yield f"  #   # {one_line(evidence)}"
            yield f"  #   {key}: {written(value)}"


def _guesses(tally: Tally, tool: Tool) -> Iterator[tuple[str, tuple[Any, str]]]:
    """
    Yields declarations that a tool's name and the cost of its calls propose.
    """
    words, looks = [word.lower() for word in TOKEN.findall(own_name(tally.tool))], LOOKS | {"query"}
    if tool.read_only is None and not looks.isdisjoint(words[:1]):
        yield "read_only", (True, "by its name only: it changes nothing")
    # The order of an `order_status` is a thing.
    if not tool.read_only and not ONCE.isdisjoint(words[:1]) and looks.isdisjoint(words):
        if tool.idempotent is None:
            yield "idempotent", (False, "by its name only: it is not run again while nobody knows how it ended")
        if not tool.repeats:
            yield "repeats", ("ask", "by its name only: a person is asked before an equal call runs again")
    ran = tally.calls - tally.denied.total()
    if tally.cost and not tool.cost_usd:
        each = float(f"{tally.cost / MICRO / max(ran, 1):.3g}")
        yield "cost_usd", (each, f"the average of {plural(ran, 'call')}: held back before a call runs")
