"""
A first policy as a file: limits with room above what was seen, and what the figures say of each tool as comments.

Nothing is declared of a tool that nobody has confirmed.
"""

import glob

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import MICRO
from guardrails.offline.figures import plural, visible
from guardrails.offline.report.names import named_once, named_to_read
from guardrails.offline.report.quality import Quality
from guardrails.offline.report.suggestions import Suggestion, text_of, written
from guardrails.offline.report.tally import Tally
from guardrails.policy.policy import Policy


LEAST_CALLS: Final = 1_000
"""Calls of a session that are never refused: what the policy `default` has."""
MARGIN: Final = 3
"""Times the longest session that was seen."""
SHOWN: Final = 100
"""Tools that have an entry of their own."""
_AHEAD: Final = """\
# What decides over the calls of an agent. The next steps:
#   {check}
#   {judge}
"""
_BODY: Final = """\
version: 1
extends: {base}                  # {about}

# enforce refuses calls; observe decides and records, and changes nothing: good for a first week.
mode: {mode}

budget:                           # of one session
  max_calls: {calls}{room}# {seen}
  # max_cost_usd: 5               # of model responses and tools, as far as prices are known
  # max_elapsed: 1h               # from its first call on

# rate:
#   max_calls_per_second: 20
# truncate:
#   max_bytes: 64KiB              # of a result, as the model reads it
# tool_filter:
#   deny: [delete_database]       # tools that are always refused
"""
_ABOUT: Final = "generous limits; a repeat is refused only if it is shown to bring nothing"


def starter(
    found: Quality | None,
    suggestions: Sequence[Suggestion],
    policy: Policy,
    *,
    steps: tuple[str, str],
    mode: str = "enforce",
    observed: Collection[str] = (),
) -> str:
    """
    The text of the file. The figures of recorded calls are *found*, if there are some. It extends *policy*. The
    commands that check and judge the file are *steps*.

    Calls of the tools *observed* are decided over and never refused, as those of all tools in *mode* `observe` are.
    """
    longest = 0 if found is None else found.longest
    most = max(LEAST_CALLS, _round(MARGIN * longest))
    seen = (
        f"the longest session seen had {plural(longest, 'call')}"
        if longest
        else "the longest honest ones have several hundred"
    )
    check, judge = map(visible, steps)
    text = "# Written by `guardrails init`" + ("" if found is None else f" from {_told(found)}") + ".\n"
    text += _AHEAD.format(check=check, judge=judge)
    room = " " * max(1, 34 - len(f"  max_calls: {most}"))
    text += _BODY.format(base=policy.name, about=_ABOUT, mode=mode, calls=most, room=room, seen=seen)
    return text + "\n" + "\n".join(_tools(found, suggestions, policy, observed)) + "\n"


def _told(found: Quality) -> str:
    tools = plural(len(found.tallies), "tool")
    return f"{plural(found.calls, 'call')} of {plural(found.sessions, 'session')}, {tools}"


def _round(calls: int) -> int:
    """
    Up to two leading digits.
    """
    step: int = 10 ** max(0, len(str(calls)) - 2)
    return -(-calls // step) * step


def _tools(
    found: Quality | None, suggestions: Sequence[Suggestion], policy: Policy, observed: Collection[str]
) -> Iterator[str]:
    yield "# The first rule that says something of a tool holds. What stands behind # is a guess: take the # away if it is so."
    yield f"# The rules of the policy `{policy.name}` stand below these: tools that read or poll by their names."
    yield "tools:"
    if found is None:
        yield "  # - match: get_*"
        yield "  #   read_only: true               # changes nothing"
        yield "  # - match: job_status"
        yield "  #   repeats: allow                # is asked again until something has happened"
        yield "  # - match: search"
        yield "  #   timeout: 30s"
        return
    known = [tally for tally in found.tallies.values() if tally.tool.isprintable()]
    busiest = sorted(known, key=lambda tally: (tally.tool not in observed, -tally.calls, tally.tool))
    supported = {one.tool: one for one in suggestions}
    for tally in busiest[:SHOWN]:
        yield from _tool(tally, supported.get(tally.tool), policy, observed=tally.tool in observed)
    if len(busiest) > SHOWN:
        yield f"  # and {plural(len(busiest) - SHOWN, 'tool')} with fewer calls"


def _tool(tally: Tally, one: Suggestion | None, policy: Policy, *, observed: bool) -> Iterator[str]:
    name, tool = text_of(glob.escape(tally.tool)), policy.chain.plan(tally.tool).tool
    failed = f", {tally.failed:,} failed" if tally.failed else ""
    taken = f"`repeats: {tool.repeats}`" if tool.repeats else "read-only" if tool.read_only else None
    said = f"; `{policy.name}` takes it for {taken} by its name" if taken else ""
    yield f"  # {visible(tally.tool)}: {plural(tally.calls, 'call')} in {plural(tally.sessions, 'session')}{failed}{said}"
    if observed:
        yield f"  - match: {name}"
        yield "    mode: observe                 # some of its calls would have been refused wrongly: recorded, and let run"
    proposed = {key: (value, one.evidence[key]) for key, value in one.settings.items()} if one is not None else {}
    proposed = dict(_guesses(tally, tool)) | proposed
    if proposed and not observed:
        yield f"  # - match: {name}"
    for key, (value, evidence) in proposed.items():
        yield f"  #   # {visible(evidence)}"
        yield f"  #   {key}: {written(value)}"


def _guesses(tally: Tally, tool: Tool) -> Iterator[tuple[str, tuple[Any, str]]]:
    """
    Yields declarations that a tool's name and the cost of its calls propose.
    """
    if tool.read_only is None and named_to_read(tally.tool):
        yield "read_only", (True, "by its name only: it changes nothing")
    if not tool.read_only and named_once(tally.tool):
        if tool.idempotent is None:
            yield "idempotent", (False, "by its name only: it is not run again while nobody knows how it ended")
        if not tool.repeats:
            yield "repeats", ("ask", "by its name only: a person is asked before an equal call runs again")
    ran = tally.calls - tally.denied.total()
    if tally.cost and not tool.cost_usd:
        each = float(f"{tally.cost / MICRO / max(ran, 1):.3g}")
        yield "cost_usd", (each, f"the average of {plural(ran, 'call')}: held back before a call runs")
