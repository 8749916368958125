"""
The scopes of a policy: their names, their guards, and whose they are in a session.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from guardrails.core.chain import Chain, Rule
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.scopes import GLOBAL
from guardrails.core.values.errors import SessionError
from guardrails.core.values.session_id import checked_id

from .check import checked_guards
from .scope_names import scope_name


Messages = Mapping[str, Mapping[str, str]]


def scope_chains(
    scopes: Mapping[str, Iterable[Guard]],
    mistakes: list[str],
    *,
    rules: Iterable[Rule],
    messages: Mapping[str, Messages],
    **settings: Any,
) -> dict[str, Chain]:
    """
    Returns the guards of each scope, ready to decide. Their faults go into *mistakes*.

    Only those of a policy's *rules* hold that set the mode in which a tool is guarded. The *messages* are by scope.
    """
    modes = [replace(rule, declared={}, guards={}) for rule in rules if rule.mode or rule.on_error]
    made = {}
    for name, guards in sorted(scopes.items(), key=lambda scope: str(scope[0])):
        found: list[str] = []
        try:
            scope_name(name)
        except ValueError as error:
            found.append(str(error))
        own = checked_guards(guards, found)
        found += [wrong for guard in own for wrong in _wrong(guard)]
        if not own and not found:
            found.append("a scope without guards limits nothing")
        mistakes += [f"scopes.{name}: {mistake}" for mistake in found]
        order = [cls.name for cls in GUARDS]
        own.sort(key=lambda guard: order.index(guard.name) if guard.name in order else len(order))
        made[name] = Chain(own, rules=modes, messages=messages.get(name), **settings)
    return made


def _wrong(guard: Guard) -> list[str]:
    if guard.scope_settings == ():
        known = ", ".join(f"`{cls.name}`" for cls in GUARDS if cls.scope_settings != ())
        return [f"`{guard.name}` looks at one session's own calls; a scope may have {known}"]
    if overrides(guard, "shape") and guard.scope_settings is None:
        return [f"`{guard.name}` shapes results, which is a session's own: give it to the policy"]
    return [
        f"{guard.name}.{setting}: it is a session's own; set it in the policy's `{guard.name}`"
        for setting in guard.settings()
        if guard.scope_settings is not None and setting not in guard.scope_settings
    ]


def split_messages(
    messages: Messages, scopes: Iterable[str]
) -> tuple[dict[str, Mapping[str, str]], dict[str, Messages]]:
    """
    Returns the wordings of a policy's own codes, and the wordings of each scope's codes (`user.budget.max_calls`),
    without the scope's name.
    """
    names = frozenset(scopes)
    own: dict[str, Mapping[str, str]] = {}
    of_scopes: dict[str, dict[str, Mapping[str, str]]] = {}
    for code, words in messages.items():
        scope, _, rest = str(code).partition(".")
        if scope in names:
            of_scopes.setdefault(scope, {})[rest] = words
        else:
            own[code] = words
    return own, dict(of_scopes)


def chosen(chains: Mapping[str, Chain], given: Mapping[str, str] | None) -> tuple[tuple[str, str, Chain], ...]:
    """
    Returns (name, id, chain) of each scope, for a session of which *given* says whose it is.

    Raises SessionError if a scope is not said, not known or not validly named.
    """
    ids = dict(given or {})
    for name in ids:
        if name not in chains:
            from difflib import get_close_matches

            near = get_close_matches(str(name), chains, 1)
            hint = f", did you mean `{near[0]}`?" if near else f"; it has {_listed(chains)}"
            raise SessionError(f"the policy has no scope `{name}`{hint}")
    if GLOBAL in chains:
        ids.setdefault(GLOBAL, GLOBAL)
    missing = [name for name in chains if name not in ids]
    if missing:
        shown = ", ".join(f'"{name}": ...' for name in chains if name != GLOBAL)
        raise SessionError(
            f"the policy limits the scope{'s' if len(missing) > 1 else ''} {_listed(missing)}: say whose this session is, "
            f"`policy.session(name, scopes={{{shown}}})`"
        )
    return tuple(
        (name, checked_id(ids[name], f"the id of the scope `{name}`"), chain) for name, chain in chains.items()
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
