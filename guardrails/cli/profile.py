"""
The command `profile`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardrails.cli.front.group import examples
from guardrails.cli.text.outputs import tell_of_written, write_whole
from guardrails.cli.text.printing import fail, paragraph, print_json, table


if TYPE_CHECKING:
    from guardrails.core.retries.profiles import Profile


@examples("guardrails profile model.json", "guardrails profile model.json --tool search_flights")
def profile(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `train` has written.")],
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="This tool only.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there a page to look at.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
) -> None:
    """
    Say how the failures of each tool resolve: how often a retry works, after which wait, how sure that is.
    """
    from guardrails.core.retries.profiles import profile_of
    from guardrails.core.values.errors import ModelError
    from guardrails.offline.pages.numbers import plural
    from guardrails.policy.model_files import read_model

    if html is not None and html.resolve() == model.resolve():
        fail(f"`--html` would overwrite `{model}`, which is to be read")
    try:
        found = [profile_of(document) for document in read_model(model).body["profiles"]]
    except ModelError as error:
        fail(f"`{model}`: {error}")
    except OSError as error:
        fail(f"cannot read `{model}`: {error.strerror}")
    if tool is not None:
        found = [one for one in found if one.tool == tool]
    shown = sorted(found, key=lambda one: (one.tool, -one.retries))
    if html is not None:
        from guardrails.offline.pages.profiles import profile_page

        write_whole(html, profile_page(shown, str(model)))
        tell_of_written(html, f"A page of {plural(len(found), 'kind')} of failure")
    if as_json:
        print_json([{**one.document(), "sentence": one.sentence()} for one in found])
    elif not found:
        typer.echo("The model knows no failures" + (f" of `{tool}`." if tool is not None else "."))
    else:
        typer.echo(_text(shown))


def _text(profiles: "list[Profile]") -> str:
    from guardrails.offline.pages.markup import short
    from guardrails.offline.pages.numbers import NONE
    from guardrails.offline.pages.profiles import COLUMNS

    said = [
        paragraph(f"{one.sentence()}.", hanging="  ")
        for one in profiles
        if one.retries or one.corrected.n or one.repaired.n
    ]
    rows = [["tool, error", *(column.name for column in COLUMNS)]]
    rows += [
        [
            f"{short(one.tool)} {one.error}",
            *("" if column.cell(one).text == NONE else column.cell(one).text for column in COLUMNS),
        ]
        for one in profiles
    ]
    legend = [paragraph(f"{column.name}: {column.meaning}", hanging="  ") for column in COLUMNS]
    return "\n".join([*said, "", table(rows), "", *legend])
