"""
The command `profile`.
"""

from pathlib import Path
from typing import Annotated

import typer

from .console import Html, Json, fail, inputs_of, print_json, say, write_page


def profile(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `train` has written.")],
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="This tool only.")] = None,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """
    Say how often a retry works, by tool and kind of failure.

    One sentence each: after which wait, and how sure that is. Older retries weigh less.

    \b
    Examples:
      guardrails profile model.json
      guardrails profile model.json --tool search_flights
    """
    from guardrails.core.values.errors import ModelError
    from guardrails.offline.learning.profiles import curve_of, profile_of
    from guardrails.policy.models import read_model

    inputs_of([str(model)], html=html)
    try:
        learned = read_model(model)
        profiles = [profile_of(one) for one in learned.body["profiles"] if tool in (None, one["tool"])]
    except ModelError as error:
        fail(f"`{model}`: {error}")
    document = [
        {**one.document(), "sentence": one.sentence(), "curve": curve_of(learned, one.tool, one.error)}
        for one in profiles
    ]
    write_page(html, "profile", document)
    if as_json:
        print_json(document)
        return
    sentences = [one.sentence() for one in sorted(profiles, key=lambda one: (one.tool, -one.retries))]
    for sentence in sentences or [f"The model knows no failures{'' if tool is None else f' of `{tool}`'}"]:
        say(f"{sentence}.")
