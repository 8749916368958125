"""
The command `explain`.
"""

import json
import re

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.group import examples
from guardrails.cli.text.printing import fail, heading, paragraph, print_json, printable, table


if TYPE_CHECKING:
    from guardrails.cli.codes import Explained

NEAR: Final = 5
"""Codes that are named in place of an unknown one."""
_KINDS: Final = {
    "denial": "a refusal",
    "nudge": "a hint",
    "end": "the end of a loop",
    "failure": "a failure",
    "status": "a status",
}

_LINES: Final = (
    "These are lines of a policy file. `guardrails replay` judges it on recorded calls before it decides over new ones."
)
_RULES: Final = "Put a rule first into the `tools:` of your policy: the first one that says something of a tool holds."


@examples("guardrails explain", "guardrails explain budget.max_calls", "guardrails explain duplicates.evidence --json")
def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="A code, an error type or a status; none: list them all."),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """
    Say in plain words what a code means: what decided it, what the model is told, how to loosen it or switch it off.

    Codes stand in envelopes, in records, and in what `replay` and `report` print. One of a scope begins with its name.
    """
    from guardrails.cli.codes import EXPLAINED

    if code is None:
        if as_json:
            print_json([{"code": one.code, "kind": one.kind, "when": one.when} for one in EXPLAINED.values()])
        else:
            typer.echo("\n".join(_listed()))
        return
    found = _found(code.strip().strip("`"))
    if found is None:
        fail(f"no code, error type or status is called `{code}`{_meant(code)}")
    if as_json:
        print_json(_to_dict(*found))
    else:
        typer.echo("\n".join(_told(*found)))


def _found(code: str) -> "tuple[Explained, str | None] | None":
    """
    Returns the explanation of *code*, and the name of the scope that it begins with. Returns None if there is no such
    code.
    """
    from guardrails.cli.codes import CODES, EXPLAINED
    from guardrails.core.guards import GUARDS
    from guardrails.core.guards.base import overrides
    from guardrails.policy.check import scope_name

    if code in EXPLAINED:
        return EXPLAINED[code], None
    scope, _, rest = code.partition(".")
    shared = {cls.name for cls in GUARDS if overrides(cls, "edges")}
    if rest not in CODES or rest.partition(".")[0] not in shared:
        return None
    try:
        return CODES[rest], scope_name(scope)
    except ValueError:
        return None


def _meant(code: str) -> str:
    """
    The codes that may have been meant, as the end of a sentence.
    """
    from difflib import get_close_matches

    from guardrails.cli.codes import EXPLAINED

    wanted = code.casefold().replace("-", "_")
    # A part of a code is likelier than a slip: `max_calls`, `loops`.
    near = [name for name in EXPLAINED if wanted in name] or get_close_matches(wanted, EXPLAINED, NEAR)
    if not near:
        return "; without a code, `guardrails explain` lists all"
    more = f" and {len(near) - NEAR} more" if len(near) > NEAR else ""
    return f"; did you mean {', '.join(f'`{name}`' for name in near[:NEAR])}{more}?"


def _listed() -> Iterator[str]:
    from guardrails.cli.codes import EXPLAINED

    long = {"end", "failure", "status"}
    yield table(
        [("code", ""), *((c, _plain(one.means if one.kind in long else one.when)) for c, one in EXPLAINED.items())]
    )
    yield "guardrails explain CODE tells more of each.\nA code of a scope begins with its name: user.budget.max_calls."


def _told(one: "Explained", scope: str | None) -> Iterator[str]:
    said = _to_dict(one, scope)
    status = "" if one.kind == "status" else f", status {one.status}"
    yield heading(f"{said['code']}: {_KINDS[one.kind]}{status}")
    yield paragraph(said["means"])
    yield ""
    rows = [
        *(("Decided by", f"{each['name']}: {_set(each)}") for each in said["settings"]),
        ("Model reads", said["told"]),
        ("Retry", said["retry"]),
        ("Loosen", said["loosen"]),
        ("Switch off", said["off"]),
        ("Otherwise" if said["loosen"] or said["off"] else "To change it", said["instead"]),
        ("In records", said["records"]),
        ("Docs", said["docs"]),
    ]
    yield from (paragraph(f"{title.ljust(13)}{text}", hanging=" " * 13) for title, text in rows if text)
    lines = said["loosen"], said["off"]
    if any(lines):
        yield f"\n{paragraph(_LINES)}"
    if any(text.startswith("tools:") for text in lines):
        yield paragraph(_RULES)


def _set(setting: dict[str, Any]) -> str:
    if setting["rule"]:
        return "of a `tools:` rule"
    default, shipped = (_value(setting[name]) for name in ("default", "shipped"))
    if shipped == default:
        return f"{default} unless the policy says otherwise"
    return f"{shipped} in the policy `default`, {default} in one that says nothing of it"


def _value(value: Any) -> str:
    return (
        f"{value:g}" if isinstance(value, float) else json.dumps(value, default=str).strip('"').replace("null", "none")
    )


def _to_dict(one: "Explained", scope: str | None) -> dict[str, Any]:
    code, means = one.code, one.means
    loosen, off = one.loosen, one.off
    settings = list(one.settings)
    if scope is not None:
        code = f"{scope}.{code}"
        means = f"{means} Here it is the limit of the scope `{scope}`, shared by all of its sessions."
        loosen, off = (f"scopes: {{{scope}: {{{lines}}}}}" if lines else "" for lines in (loosen, off))
        settings = [f"scopes.{scope}.{name}" for name in settings]
    return {
        "code": code,
        "kind": one.kind,
        "status": one.status,
        "when": _plain(one.when),
        "means": means,
        "settings": [_setting(name) for name in settings],
        "told": one.told,
        "retry": one.retry,
        "loosen": loosen,
        "off": off,
        "instead": one.instead,
        "records": _records(one, code),
        "docs": f"docs/{one.page}",
    }


def _setting(name: str) -> dict[str, Any]:
    """
    A setting with its value by default, and in the shipped policy `default`; *rule*: it is one of a `tools:` rule.
    """
    from guardrails.core.guards import GUARDS
    from guardrails.policy.policy import Policy

    section, *keys = name.split(".")
    kinds = {cls.name: cls for cls in GUARDS}
    if section == "on_error":
        return {"name": name, "rule": False, "default": "deny", "shipped": Policy.load("default").chain.on_error}
    if section not in kinds:
        return {"name": name, "rule": section == "tools", "default": None, "shipped": None}
    bare: Any = kinds[section]()
    shipped: Any = next((guard for guard in Policy.load("default").chain.guards if guard.name == section), bare)
    for key in keys:
        bare, shipped = (held[key] if isinstance(held, dict) else getattr(held, key) for held in (bare, shipped))
    return {"name": name, "rule": False, "default": bare, "shipped": shipped}


def _records(one: "Explained", code: str) -> str:
    """
    Returns the place of *code* in records.
    """
    if one.kind == "end":
        return "none: it is the `code` of the loop's result"
    if one.kind == "nudge":
        return f'`"nudges"` of a `call` line has `{code}`; `guardrails replay` counts it as nudged'
    if one.kind == "status":
        return "a `call` line has the decision and its code, a `settle` line how the call ended"
    if "." not in one.code:
        return f'a `settle` line has `"error_type":"{code}"`; `guardrails report` counts it as failed'
    if code.startswith(("store.", "clock.")):
        return "none: no line can be numbered without a state and a time; the program's log has it"
    if one.kind == "failure":
        return f'the `settle` line says `"retryable":false`; of a refused call the `call` line has `{code}`'
    where = f'a `call` line has `"decision":"deny","code":"{code}"`; in observe mode `"observed"` has the code'
    return f"{where}. `guardrails report` and `replay` count it by code"


def _plain(text: str) -> str:
    """
    *text* of a page without its links.
    """
    return printable(re.sub(r"\[([^\[\]]*)\]\([^()]*\)", r"\1", text))
