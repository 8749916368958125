"""
The command `replay`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.outputs import tell_of_written, without_outputs
from guardrails.cli.text.printing import (
    FOUND,
    fail,
    failures_told,
    formats_text,
    heading,
    paragraph,
    print_json,
    printable,
    table,
    tell_of_nothing,
)
from guardrails.offline.figures import plural

from .policies import load_policy


if TYPE_CHECKING:
    from guardrails.offline.replay.exactness import Exactness
    from guardrails.offline.replay.result import Judgement, Stop, Tally
    from guardrails.offline.transcripts.inputs import Input
    from guardrails.policy.policy import Policy


MAX_ROWS: Final = 40
"""Sources in a table."""
MAX_NOTICES: Final = 12
SHOWN: Final = 10
"""Refused calls that are shown one by one."""
NAME: Final = 24
"""Characters of a source's name."""
_COLUMNS: "Final[tuple[tuple[str, Callable[[Tally], str]], ...]]" = (
    ("calls", lambda t: f"{t.calls:,}"),
    ("denied", lambda t: f"{t.denials:,}"),
    ("wrong", lambda t: f"{t.wrong.total():,}"),
    ("per 1,000", lambda t: f"{t.wrong_per_1000:.2f}"),
    ("limits", lambda t: f"{t.limit_stops.total():,}"),
    ("after", lambda t: f"{t.after_exhaustion.total():,}"),
    ("2nd", lambda t: f"{t.stopped_second:,}/{t.pointless_second:,}"),
    ("later", lambda t: f"{t.stopped_later:,}/{t.pointless_later:,}"),
    ("nudged", lambda t: f"{t.nudged.total():,}"),
)
_BY_CODE: "Final[tuple[tuple[str, Callable[[Tally], Counter[str]]], ...]]" = (
    ("denied", lambda t: t.denied),
    ("wrong", lambda t: t.wrong),
    ("no result", lambda t: t.unknown),
    ("after", lambda t: t.after_exhaustion),
    ("nudged", lambda t: t.nudged),
    ("observed", lambda t: t.observed),
    ("wrongly", lambda t: t.wrong_observed),
    ("cap off", lambda t: t.denied_without_cap if t.denied_without_cap != t.denied else Counter()),
)
_LEGEND: Final = (
    "wrong: denials by duplicates or loops of calls that brought something new; limits: denials by budget, rate, growth and "
    "streak; after: further calls of sessions that were exhausted by then; 2nd, later: pointless repeats that were stopped, "
    "of those there are; no result: nobody knows whether they are wrong; observed, wrongly: guards in observe mode would have "
    "denied; cap off: denied without `denials`."
)
_FIGURES: "Final[tuple[tuple[str, Callable[[Tally], float]], ...]]" = (
    ("after exhaustion", lambda t: t.after_exhaustion.total()),
    ("lost after the end", lambda t: t.lost.total()),
    ("nudged", lambda t: t.nudged.total()),
    ("observed", lambda t: t.observed.total()),
    ("wrong", lambda t: t.wrong.total()),
    ("wrong per 1,000", lambda t: t.wrong_per_1000),
    ("wrong observed", lambda t: t.wrong_observed.total()),
    ("limit stops", lambda t: t.limit_stops.total()),
    ("2nd pointless stopped", lambda t: t.stopped_second),
    ("later pointless stopped", lambda t: t.stopped_later),
    ("saved calls, at most", lambda t: t.saved_calls),
    ("saved responses, at most", lambda t: t.saved_responses),
    ("saved tokens, at most", lambda t: t.saved_tokens),
    ("saved USD, at most", lambda t: t.saved_micro_usd / 1_000_000),
)


@examples(
    "guardrails replay default sessions/",
    "guardrails replay policy.yaml sessions/ --compare default --html page.html",
    "guardrails replay policy.yaml records.jsonl --exact",
)
def replay(
    *,
    policy: Annotated[
        str,
        typer.Argument(metavar="POLICY", help="A policy file, or the name of a shipped one."),
    ],
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Transcripts and folders of them; - is standard input.")
    ],
    compare: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="A second policy, shown beside the first."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    decisions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there one JSON line for each recorded call.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there a page to look at.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide our own records again exactly; exit code 1: something differs.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
) -> None:
    """
    Judge a policy on recorded calls: what it would have stopped, and how often it would have been wrong.

    Reads OpenAI chats, Responses items, OpenTelemetry spans, LangSmith runs, JSON lines of calls and our own records. Reads
    sessions of Claude Code, Codex and Gemini CLI too. Files may be plain, gzip'd or zstd-compressed.
    """
    from guardrails.offline.transcripts.inputs import inputs

    policies = [load_policy(policy), *([load_policy(compare)] if compare is not None else [])]
    try:
        found = inputs(files)
    except OSError as error:
        fail(str(error))
    if exact and (decisions is not None or html is not None):
        fail("`--exact` goes without `--decisions` and `--html`")
    found = without_outputs(found, {"--decisions": decisions, "--html": html})
    if exact:
        _exact(policies, found, as_json=as_json)
        return
    from guardrails.cli.text.progress import telling
    from guardrails.offline.replay.run import judge_files
    from guardrails.offline.transcripts.inputs import nothing_found

    with failures_told(), telling(quiet=quiet or as_json) as tell:
        made = judge_files(policies, found, decisions=decisions, tell=tell)
    said = [one.to_dict() for one in made]
    document = said[0] if len(said) == 1 else {"judgements": said}
    calls = made[0].total.calls
    if as_json:
        print_json(document)
    if not calls:
        tell_of_nothing(nothing_found(files, made[0].without))
    if not as_json:
        typer.echo("\n\n".join(_judged(*made) if len(made) == 1 else _compared(*made)))
    # After the figures: a full disk does not cost those too.
    if html is not None:
        from guardrails.cli.text.page import write_page

        write_page(html, "replay", document, plural(calls, "call"))
    if decisions is not None:
        tell_of_written(decisions, f"{plural(calls, 'decision')} of {made[0].policy}, one to a line,")


def _exact(policies: "list[Policy]", files: "list[Input]", *, as_json: bool) -> None:
    from guardrails.offline.replay.exactness import NoRecordsError, replayed

    with failures_told():
        try:
            found = replayed(policies[0], files, policies[1:])
        except NoRecordsError as error:
            tell_of_nothing(str(error))
    print_json(found.to_dict()) if as_json else typer.echo("\n\n".join(_again(found)))
    if not found.same:
        raise typer.Exit(FOUND)


def _judged(one: "Judgement") -> Iterator[str]:
    """
    One policy: the figures of each source, then of all what was decided by which code, and why that was wrong.
    """
    from guardrails.offline.replay.counting import WHY

    meanings: dict[Any, str] = {**WHY}
    total, sources = one.total, sorted(one.tallies, key=lambda tally: -tally.calls)
    yield heading(f"{one.policy} on {_seen(total)}")
    rows = [(_name(t.source), *(of(t) for _, of in _COLUMNS)) for t in (*sources[:MAX_ROWS], total)]
    yield table([("", *(name for name, _ in _COLUMNS)), *rows], figures=True)
    if len(sources) > MAX_ROWS:
        yield f"The total is of {len(sources) - MAX_ROWS:,} more sources; `--json` has them all."
    counts = [(name, counter) for name, of in _BY_CODE if (counter := of(total))]
    if counts:
        codes = dict.fromkeys(code for _, counter in counts for code, _ in counter.most_common())
        rows = [(code, *(f"{counter[code]:,}" for _, counter in counts)) for code in codes]
        yield table([("code", *(name for name, _ in counts)), *rows], figures=True)
    yield paragraph(_LEGEND)
    for which, why, worked in (
        ("wrong", total.wrong_why, total.wrong_worked),
        ("observed wrongly", total.wrong_observed_why, total.wrong_observed_worked),
    ):
        if why:
            each = (f"{n:,} {name} ({worked[name]:,} worked): {meanings[name]}" for name, n in why.most_common())
            yield paragraph(f"{which} because {'; '.join(each)}.")
    if total.lost:
        lost, worked_too, new = (counter.total() for counter in (total.lost, total.lost_worked, total.lost_new))
        yield paragraph(f"lost after the end {lost:,} ({worked_too:,} worked, {new:,} of them no repeat)")
    yield paragraph(
        f"Saved at most: {plural(total.saved_calls, 'call')}; {plural(total.saved_responses, 'model response')} all of whose "
        f"calls were stopped, with {plural(total.saved_tokens, 'token')} and ${total.saved_micro_usd / 1_000_000:,.2f}. A "
        "model that is stopped may do something else."
    )
    yield from _ends(one)


def _compared(one: "Judgement", other: "Judgement") -> Iterator[str]:
    """
    Two policies side by side, harm first; last the next step with the *other*.
    """
    names = (one.policy, other.policy) if one.policy != other.policy else (f"{one.policy} (1)", f"{one.policy} (2)")
    totals, refused = (one.total, other.total), [_harming(each) for each in (one, other)]
    harmed = [
        t.denials + t.after_exhaustion.total() - t.stopped_second - t.stopped_later for t in totals
    ]  # of all, not only of the stops that are kept
    yield heading(f"{names[0]} and {names[1]} on {_seen(totals[0])}")
    counts = "; ".join(f"{name} {plural(n, 'call')}" for name, n in zip(names, harmed, strict=True))
    said = [paragraph(f"Refused, and no pointless repeat: {counts}.")]
    if harmed[1]:
        before = {_place(stop) for stop in refused[0]}
        said.append(heading(f"{names[1]} would refuse"))
        for stop in refused[1][:SHOWN]:
            why = [*filter(None, [stop.why]), *(["no recorded result"] if stop.pointless is None else [])]
            why.append(f"so does {names[0]}" if _place(stop) in before else f"{names[0]} does not")
            where = f"{stop.source}: {stop.session_id}, call {stop.call_index}: {stop.tool}, {stop.code}"
            said.append(paragraph(f"{where} ({', '.join(why)})", indent="  ", hanging="    "))
        if harmed[1] > SHOWN:
            said.append(f"  and {harmed[1] - SHOWN:,} more; `--decisions FILE` has all")
    yield "\n".join(said)
    rows = [("total", *names, "difference"), ("denied", *_pair(*(t.denials for t in totals)))]
    codes = sorted({*totals[0].denied, *totals[1].denied})
    rows += [(f"  {code}", *_pair(*(t.denied[code] for t in totals))) for code in codes]
    rows += [(what, *_pair(*map(figure, totals))) for what, figure in _FIGURES]
    yield table(rows, figures=True)
    yield from _ends(one, other)
    yield paragraph(f"Next: {_next(names[1].removesuffix(' (2)'), totals[1], refused[1])}")


def _pair(one: float, other: float) -> tuple[str, str, str]:
    digits = "" if isinstance(one, int) else ".2f"
    same = round(other - one, 2) == 0
    return f"{one:,{digits}}", f"{other:,{digits}}", "=" if same else f"{other - one:+,{digits}}"


def _next(policy: str, total: "Tally", refused: "list[Stop]") -> str:
    denied = total.denials + total.after_exhaustion.total()
    if refused:
        code = Counter(stop.code for stop in refused).most_common(1)[0][0]
        return (
            f"look at the calls above: what is honest work must not be refused. `guardrails explain {code}` says how to loosen "
            f"it in `{policy}`. Then give this command again."
        )
    if denied:
        return (
            f"`{policy}` refuses pointless repeats only, {denied:,} of {plural(total.calls, 'call')}. Check it "
            f"(`guardrails policy check {policy}`), load it in place of the one that observes, and report on the next day."
        )
    if total.observed:
        return f"`{policy}` refuses nothing: it observes. Set `mode: enforce` once what it would have refused is right."
    return f"`{policy}` refuses none of these calls. Record more days, or ask for more: `guardrails report --suggest`."


def _harming(judgement: "Judgement") -> "list[Stop]":
    return [stop for stop in judgement.stops if stop.decision == "deny" and not stop.pointless]


def _place(stop: "Stop") -> tuple[str, str, str, int]:
    return stop.source, stop.session_id, stop.run, stop.call_index


def _again(found: "Exactness") -> Iterator[str]:
    """
    Records that were decided again.
    """
    what = f"{plural(found.calls, 'call')} of {plural(found.sessions, 'session')} decided again by `{found.policy}`"
    lines = [f"{what}: " + ("every decision is the recorded one." if found.same else f"{found.differing:,} differ.")]
    for each in found.first:
        place = each.session_id if each.n is None else f"{each.session_id}, event {each.n}, {each.tool}"
        lines.append(f"  {place}: recorded {each.recorded}; now {each.replayed}")
    left = found.differing - len(found.first)
    lines += [f"  and {left:,} more"] if left > 0 else []
    lines += [f"{plural(found.broken_lines, 'broken line')} skipped."] if found.broken_lines else []
    yield printable("\n".join(lines))
    yield from _titled("Not judged", _reasons(found.not_judged))
    yield from _titled("Notices", found.notices)


def _ends(one: "Judgement", other: "Judgement | None" = None) -> Iterator[str]:
    """
    What was not judged, how files were read, and the notices met on the way; of two policies what is so of both is told once.
    """
    if other is None:
        yield from _titled("Not judged", _reasons(one.not_judged))
    else:
        both = {guard: why for guard, why in one.not_judged.items() if other.not_judged.get(guard) == why}
        yield from _titled("Not judged", _reasons(both))
        for each in (one, other):
            own = {guard: why for guard, why in each.not_judged.items() if guard not in both}
            yield from _titled(f"Not judged of {each.policy}", _reasons(own))
    yield from formats_text(one.read_as, one.without)
    yield from _titled("Notices", list(dict.fromkeys([*one.notices, *(other.notices if other else ())])))


def _reasons(guards: Mapping[str, str]) -> list[str]:
    reasons = dict.fromkeys(guards.values())
    return [f"{', '.join(name for name in guards if guards[name] == reason)}: {reason}" for reason in reasons]


def _titled(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        more = [f"  and {len(lines) - MAX_NOTICES:,} more; `--json` has them"] if len(lines) > MAX_NOTICES else []
        shown = (paragraph(line, indent="  ", hanging="    ") for line in lines[:MAX_NOTICES])
        yield "\n".join([heading(title), *shown, *more])


def _seen(total: "Tally") -> str:
    return f"{plural(total.calls, 'recorded call')} of {plural(total.sessions, 'session')}"


def _name(source: str) -> str:
    name = printable(source).replace("\n", " ")
    return name if len(name) <= NAME else f"{name[: NAME - 8]}...{name[-5:]}"
