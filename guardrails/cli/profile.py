"""
The command `profile`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import fail, paragraph, print_json, table
from guardrails.offline.figures import FEW, plural, visible


if TYPE_CHECKING:
    from guardrails.offline.learning.profiles import Profile

NAME: Final = 72
"""Characters of a tool's name."""


@examples("guardrails profile model.json", "guardrails profile model.json --tool search_flights")
def profile(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `train` has written.")],
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="This tool only.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there a page to look at.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Say how the failures of each tool resolve: how often a retry works, after which wait, how sure that is.
    """
    from guardrails.core.retries.decision import curve_of
    from guardrails.core.values.errors import ModelError
    from guardrails.offline.learning.profiles import profile_of
    from guardrails.policy.models import read_model

    if html is not None and html.resolve() == model.resolve():
        fail(f"`--html` would overwrite `{model}`, which is to be read")
    try:
        learned = read_model(model)
        found = [profile_of(document) for document in learned.body["profiles"]]
    except ModelError as error:
        fail(f"`{model}`: {error}")
    except OSError as error:
        fail(f"cannot read `{model}`: {error.strerror}")
    if tool is not None:
        found = [one for one in found if one.tool == tool]
    document = [
        {**one.document(), "sentence": one.sentence(), "curve": curve_of(learned, one.tool, one.error)} for one in found
    ]
    if html is not None:
        from guardrails.cli.text.page import write_page

        write_page(html, "profile", document, plural(len(found), "kind of failure", "kinds of failure"))
    if as_json:
        print_json(document)
    elif not found:
        typer.echo("The model knows no failures" + (f" of `{tool}`." if tool is not None else "."))
    else:
        typer.echo(_text(sorted(found, key=lambda one: (one.tool, -one.retries))))


_COLUMNS: "Final[tuple[tuple[str, str, Callable[[Profile], str]], ...]]" = (
    (
        "retries",
        "The same call again, nothing changed in between; older ones weigh less.",
        lambda p: f"{p.retries:,.0f}",
    ),
    (
        "worked",
        "The share of them that worked, drawn towards that of all tools with this error; the counts if there are few.",
        lambda p: _worked(p) if p.retries else "",
    ),
    (
        "95 %",
        "Between these the share lies, by their counts alone.",
        lambda p: f"{100 * p.low:.0f}-{100 * p.high:.0f} %" if p.retries else "",
    ),
    (
        "best wait",
        "The shortest wait within 10 % of the best.",
        lambda p: "" if p.wait_ms is None else f"{p.wait_ms / 1000:g} s",
    ),
    (
        "then",
        "The share that works after it.",
        lambda p: "" if p.wait_rate is None else f"{100 * p.wait_rate:.0f} %",
    ),
    (
        "repaired",
        "The same call after something else was changed in between, and how often it worked.",
        lambda p: _of(*p.repaired),
    ),
    (
        "changed",
        "Calls with other arguments that came next, and how often they worked.",
        lambda p: _of(*p.corrected),
    ),
)


def _worked(one: "Profile") -> str:
    few = one.retries < FEW
    return f"{one.successes:.0f} of {one.retries:.0f}" if few else f"{100 * one.rate:.0f} %"


def _of(n: float, s: float) -> str:
    # Decayed counts are no whole numbers.
    return f"{s:,.0f} of {n:,.0f}" if round(n) else ""


def _text(profiles: "list[Profile]") -> str:
    said = [
        paragraph(f"{one.sentence()}.", hanging="  ")
        for one in profiles
        if one.retries or one.corrected.n or one.repaired.n
    ]
    rows = [["tool, error", *(name for name, _, _ in _COLUMNS)]]
    rows += [[f"{visible(one.tool)[:NAME]} {one.error}", *(cell(one) for _, _, cell in _COLUMNS)] for one in profiles]
    legend = [paragraph(f"{name}: {meaning}", hanging="  ") for name, meaning, _ in _COLUMNS]
    return "\n".join([*said, "", table(rows), "", *legend])
