"""
The command `profile`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrails.cli.front.group import examples
from guardrails.cli.text.printing import fail, paragraph, print_json, table


if TYPE_CHECKING:
    from guardrails.core.retries.profiles import Profile
    from guardrails.core.retries.shrinkage import Count


@examples("guardrails profile model.json", "guardrails profile model.json --tool search_flights")
def profile(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `train` has written.")],
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="This tool only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """
    Say how the failures of each tool resolve: how often a retry works, after which wait, how sure that is.
    """
    from guardrails.core.retries.profiles import profile_of
    from guardrails.core.values.errors import ModelError
    from guardrails.policy.model_files import read_model

    try:
        found = [profile_of(document) for document in read_model(model).body["profiles"]]
    except ModelError as error:
        fail(f"`{model}`: {error}")
    except OSError as error:
        fail(f"cannot read `{model}`: {error.strerror}")
    if tool is not None:
        found = [one for one in found if one.tool == tool]
    if as_json:
        print_json([{**one.document(), "sentence": one.sentence()} for one in found])
    elif not found:
        typer.echo("The model knows no failures" + (f" of `{tool}`." if tool is not None else "."))
    else:
        typer.echo(_text(found))


def _text(profiles: "list[Profile]") -> str:
    by_tool: dict[str, list[Profile]] = {}
    for one in sorted(profiles, key=lambda one: (one.tool, -one.retries)):
        by_tool.setdefault(one.tool, []).append(one)
    said = [
        paragraph(f"{one.sentence()}.", hanging="  ")
        for ones in by_tool.values()
        for one in ones
        if one.retries or one.corrected.n or one.repaired.n
    ]
    rows = [["tool, error", "retries", "worked", "95 %", "best wait", "then", "repaired", "changed"]]
    rows += [_row(one) for ones in by_tool.values() for one in ones]
    return "\n".join([*said, "", table(rows)])


def _row(one: "Profile") -> list[str]:
    return [
        f"{one.tool} {one.error}",
        f"{one.retries:,.0f}",
        f"{100 * one.rate:.0f} %" if one.retries else "",
        f"{100 * one.low:.0f}-{100 * one.high:.0f} %" if one.retries else "",
        "" if one.wait_ms is None else f"{one.wait_ms / 1000:g} s",
        "" if one.wait_rate is None else f"{100 * one.wait_rate:.0f} %",
        _of(one.repaired),
        _of(one.corrected),
    ]


def _of(count: "Count") -> str:
    # Decayed counts are no whole numbers.
    return f"{count.s:,.0f} of {count.n:,.0f}" if round(count.n) else ""
