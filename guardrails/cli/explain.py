"""
The command `explain`, and the explanations of every code, kind of failure and status, of which the documentation makes
its tables.

A guard declares its codes in its own class. Their meaning stands in `codes.yaml`, so that a program that runs never loads
it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import guardrails

from .console import Json, fail, print_json, show, table
from .policy import Own, own_guards


Explained = dict[str, Any]
"""One code in plain words, for a person who has met it. `codes.yaml` says what each part is."""
_LATER: Final = dict.fromkeys(("told", "retry", "loosen", "off", "instead", "docs"), "")
_EMPTY: Final[Explained] = {"code": "", "kind": "denial", "status": "denied", "when": "", "means": "", "settings": ()}


def explanations() -> Mapping[str, Explained]:
    """
    Returns those of codes, and beside them of the kinds of failures and of the statuses; codes of scopes stand there
    without the scope's name.
    """
    import yaml

    known: dict[str, Explained] = {}
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for group in yaml.load(Path(__file__).with_name("codes.yaml").read_text(encoding="utf-8"), Loader=loader):  # noqa: S506
        for code, own in group["codes"].items():
            parts = {**_EMPTY, **_LATER, **group.get("shared", {}), **own, "code": code}
            known[code] = parts | {"docs": f"docs/{parts.pop('page')}"}
    return known


def explain(
    code: Annotated[str | None, typer.Argument(help="A code, an error type or a status; none: list all.")] = None,
    own: Own = None,
    as_json: Json = False,
) -> None:
    """
    Say in plain words what a code means, and how to loosen it.

    It says what decided, what the model is told, and the lines of a policy file that loosen it or switch it off. Codes
    stand in envelopes, in records, and in what `replay` and `report` print. A code of a scope begins with its name.

    \b
    Examples:
      guardrails explain budget.max_calls
      guardrails explain duplicates.evidence --json
      guardrails explain recipients.limit --guards recipients.py
    """
    known = {**explanations(), **{one["code"]: one for one in _own(own_guards(own))}}
    if code is not None:
        show(_explanation(code.strip().strip("`"), known), as_json=as_json)
    elif as_json:
        print_json([{name: one[name] for name in ("code", "kind", "when")} for one in known.values()])
    else:
        table([("code", "said when"), *((one["code"], one["when"]) for one in known.values())])


def _own(guards: "Iterable[type[guardrails.Guard]]") -> Iterator[Explained]:
    """
    The codes that guards of one's own declare; their docstrings say what they mean.
    """
    for cls in guards:
        rest: Explained = {"means": " ".join((cls.__doc__ or "A guard of your own.").split())}
        rest |= {"told": "the message that the guard gives it", "retry": "That depends on the guard."}
        rest |= {"settings": [f"{cls.name}.{each.name}" for each in fields(cls)], "docs": "docs/extend.md"}
        rest |= {"when": f"the guard `{cls.name}` of your own says so", "off": f"{cls.name}: {{mode: off}}"}
        yield from ({**_EMPTY, **_LATER, **rest, "code": code} for code in cls.codes or ())


def _explanation(code: str, known: Mapping[str, Explained]) -> Explained:
    """
    The explanation of *code*, or of the same in a scope. Ends the command if there is none.
    """
    from guardrails.core.refusals import ALIASES
    from guardrails.core.values.schema import suggestion

    code = ALIASES.get(code, code)
    scope, _, rest = code.partition(".")
    if code in known:
        return known[code]
    if "." not in rest or rest not in known:
        near = suggestion(code, list(known)) or "; `guardrails explain` lists all"
        fail(f"no code, error type or status is called `{code}`{near}")
    return _in_scope(known[rest], scope)


def _in_scope(one: Explained, scope: str) -> Explained:
    lines = {name: f"scopes: {{{scope}: {{{one[name]}}}}}" for name in ("loosen", "off") if one[name]}
    means = f"{one['means']} Here it is the limit of the scope `{scope}`, shared by all of its sessions."
    settings = [f"scopes.{scope}.{name}" for name in one["settings"]]
    return {**one, **lines, "code": f"{scope}.{one['code']}", "means": means, "settings": settings}
