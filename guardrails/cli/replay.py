"""
The command `replay`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.outputs import tell_of_written, without_outputs
from guardrails.cli.text.printing import (
    FOUND,
    fail,
    failures_told,
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
    from guardrails.offline.replay.tally import Judgement, Row, Tally
    from guardrails.offline.transcripts.inputs import Input
    from guardrails.policy.policy import Policy


MAX_ROWS: Final = 12
"""Sources in a table."""
MAX_NOTICES: Final = 6
SHOWN: Final = 10
"""Refused calls that are shown one by one."""
NAME: Final = 22
"""Characters of a source's name."""
_COLUMNS: "Final[tuple[tuple[str, Callable[[Tally], int], str], ...]]" = (
    ("calls", lambda t: t.calls, "recorded calls"),
    ("refused", lambda t: t.refused, "calls that the policy would not have let run, by any guard"),
    (
        "wrong",
        lambda t: t.wrong.total(),
        "of the refused: it had worked, and brought what the same call had not brought before",
    ),
    ("repeat", lambda t: t.repeats.total(), "of the refused: it brought what the same call had brought before"),
    ("failed", lambda t: t.failed.total(), "of the refused: it had failed, in another way than before"),
    ("unknown", lambda t: t.unknown.total(), "of the refused: no result is recorded"),
    ("hinted", lambda t: t.nudged.total(), "hints that calls which ran would have got"),
    ("watched", lambda t: t.observed_calls, "calls that guards in observe mode would have refused"),
    ("worked", lambda t: t.wrong_observed.total(), "of the watched: it had worked, as under wrong"),
)
_ALWAYS: Final = ("calls", "refused", "wrong")
"""Columns that are there though there is none."""
_BY_CODE: "Final[tuple[tuple[str, Callable[[Tally], Counter[str]]], ...]]" = (
    ("refused", lambda t: t.denied + t.after_exhaustion),
    ("wrong", lambda t: t.wrong),
    ("repeat", lambda t: t.repeats),
    ("failed", lambda t: t.failed),
    ("unknown", lambda t: t.unknown),
    ("hinted", lambda t: t.nudged),
    ("watched", lambda t: t.observed),
    ("worked", lambda t: t.wrong_observed),
)
_FIGURES: "Final[tuple[tuple[str, Callable[[Tally], float]], ...]]" = (
    *(column[:2] for column in _COLUMNS[1:]),
    ("wrong in 1,000", lambda t: t.wrong_per_1000),
    ("later repeats refused", lambda t: t.stopped_later),
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
    legend: Annotated[bool, typer.Option("--legend", help="Say what each word of the tables means.")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Decide our own records again exactly; exit code 1: something differs.")
    ] = False,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Judge by N processes, each some of the sessions.")
    ] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of the progress.")] = False,
) -> None:
    """
    Judge a policy on recorded calls: what it would have stopped, and how often it would have been wrong.

    Reads OpenAI chats, Responses items, OpenTelemetry spans, LangSmith runs, JSON lines of calls and our own records. Reads
    sessions of Claude Code, Codex and Gemini CLI too. Files may be plain or gzip'd.
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
        made = judge_files(policies, found, decisions=decisions, tell=tell, processes=processes)
    said = [one.to_dict() for one in made]
    document = said[0] if len(said) == 1 else {"judgements": said}
    calls = made[0].total.calls
    if as_json:
        print_json(document)
    if not calls:
        tell_of_nothing(nothing_found(files, made[0].report.without))
    if not as_json:
        typer.echo("\n\n".join(_judged(*made) if len(made) == 1 else _compared(*made)))
        typer.echo("\n" + (_legend() if legend else "`--legend` says what each word means."))
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
    One policy: the figures of each source, of all by guard, and what they come to.
    """
    total, sources = one.total, sorted(one.sources, key=lambda tally: -tally.calls)
    yield heading(f"{one.policy} on {_seen(total)}")
    columns = [(name, of) for name, of, _ in _COLUMNS if name in _ALWAYS or of(total)]
    rows = [(_name(t.source), *(f"{of(t):,}" for _, of in columns)) for t in (*sources[:MAX_ROWS], total)]
    yield table([("source", *(name for name, _ in columns)), *rows], figures=True)
    if len(sources) > MAX_ROWS:
        yield f"The total is of {len(sources) - MAX_ROWS:,} more sources; `--json` has them all."
    counts = [(name, counter) for name, of in _BY_CODE if (counter := of(total))]
    if counts:
        codes = dict.fromkeys(code for _, counter in counts for code, _ in counter.most_common())
        rows = [(code, *(f"{counter[code]:,}" for _, counter in counts)) for code in codes]
        yield table([("guard", *(name for name, _ in counts)), *rows], figures=True)
    yield "\n".join(map(paragraph, _sums(one, total)))
    yield from _ends(one)


def _sums(one: "Judgement", total: "Tally") -> Iterator[str]:
    if total.refused:
        parts = ", ".join(f"{n:,} by {code}" for code, n in total.wrong.most_common())
        rate = f" ({total.wrong_per_1000:.2f} in 1,000 calls: {parts})" if parts else ""
        yield f"Of {plural(total.refused, 'refused call')} {total.wrong.total():,} had worked{rate}."
    if total.observed_calls:
        yield f"{one.policy} would have refused {total.observed_calls:,}, of which {total.wrong_observed.total():,} had worked."
    if total.recorded_observed:
        had = f"{total.recorded_observed:,}, of which {total.recorded_observed_worked:,} had worked"
        yield f"When these calls were recorded, guards observed them: they would have refused {had}."
    if total.refused and total.pointless_second:
        second = f"{total.stopped_second:,} of {total.pointless_second:,} second ones"
        yield f"Repeats that brought nothing, refused: {second}, {total.stopped_later:,} of {total.pointless_later:,} later ones."
    for path, model in one.models.items():
        asked = f"asked about {plural(total.asked, 'failure')} and called {total.advised:,} worth a retry"
        yield f"Advice of the retry model `{path}` ({model}) is used: it was {asked}."


def _legend() -> str:
    words = [f"{name}: {meaning}" for name, _, meaning in _COLUMNS]
    return "\n".join(paragraph(word, hanging="  ") for word in words)


def _compared(one: "Judgement", other: "Judgement") -> Iterator[str]:
    """
    Two policies side by side, harm first; last the next step with the *other*.
    """
    names = (one.policy, other.policy) if one.policy != other.policy else (f"{one.policy} (1)", f"{one.policy} (2)")
    totals, wrong = (
        (one.total, other.total),
        [[row for row in each.rows if row.decision == "deny" and row.recorded == "worked"] for each in (one, other)],
    )
    yield heading(f"{names[0]} and {names[1]} on {_seen(totals[0])}")
    counts = "; ".join(f"{name} {plural(t.wrong.total(), 'call')}" for name, t in zip(names, totals, strict=True))
    said = [paragraph(f"Refused though it had worked: {counts}.")]
    if wrong[1]:
        before = {_place(stop) for stop in wrong[0]}
        said.append(heading(f"{names[1]} would refuse"))
        for stop in wrong[1][:SHOWN]:
            why = f"so does {names[0]}" if _place(stop) in before else f"{names[0]} does not"
            where = f"{stop.source}: {stop.session_id}, call {stop.call_index}: {stop.tool}, {stop.code}"
            said.append(paragraph(f"{where} ({why})", indent="  ", hanging="    "))
        if totals[1].wrong.total() > SHOWN:
            said.append(f"  and {totals[1].wrong.total() - SHOWN:,} more; `--decisions FILE` has all")
    yield "\n".join(said)
    rows = [("total", *names, "difference")]
    for what, figure in _FIGURES:
        if any(map(figure, totals)) or what in _ALWAYS:
            rows.append((what, *_pair(*map(figure, totals))))
        if what == "refused":
            each = [t.denied + t.after_exhaustion for t in totals]
            rows += [
                (f"  {code}", *_pair(*(counter[code] for counter in each))) for code in sorted({*each[0], *each[1]})
            ]
    yield table(rows, figures=True)
    yield from _ends(one, other)
    yield paragraph(f"Next: {_next(names[1].removesuffix(' (2)'), totals[1], wrong[1])}")


def _pair(one: float, other: float) -> tuple[str, str, str]:
    digits = "" if isinstance(one, int) else ".2f"
    same = round(other - one, 2) == 0
    return f"{one:,{digits}}", f"{other:,{digits}}", "=" if same else f"{other - one:+,{digits}}"


def _next(policy: str, total: "Tally", wrong: "list[Row]") -> str:
    if wrong:
        code = Counter(stop.code for stop in wrong).most_common(1)[0][0]
        return (
            f"look at the calls above: what is honest work must not be refused. `guardrails explain {code}` says how to loosen "
            f"it in `{policy}`. Then give this command again."
        )
    if total.refused:
        return (
            f"of {plural(total.calls, 'call')} `{policy}` refuses {total.refused:,}, none of which had worked. Check it "
            f"(`guardrails policy check {policy}`), load it in place of the one that observes, and report on the next day."
        )
    if total.observed:
        return f"`{policy}` refuses nothing: it observes. Set `mode: enforce` once what it would have refused is right."
    return f"`{policy}` refuses none of these calls. Record more days, or ask for more: `guardrails report --suggest`."


def _place(stop: "Row") -> tuple[str, str, str, int]:
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
    yield from _titled("Without records of this library", found.without)
    yield from _titled("Notices", found.notices)


def _ends(one: "Judgement", other: "Judgement | None" = None) -> Iterator[str]:
    """
    What was not judged, and the notices met on the way; of two policies what is so of both is told once.
    """
    if other is None:
        yield from _titled("Not judged", _reasons(one.not_judged))
    else:
        both = {guard: why for guard, why in one.not_judged.items() if other.not_judged.get(guard) == why}
        yield from _titled("Not judged", _reasons(both))
        for each in (one, other):
            own = {guard: why for guard, why in each.not_judged.items() if guard not in both}
            yield from _titled(f"Not judged of {each.policy}", _reasons(own))
    yield from _titled("Notices", one.report.notices)


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
