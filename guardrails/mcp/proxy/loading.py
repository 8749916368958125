"""
The guards as the options of the command say, and what is wrong with them before a server is started.
"""

from typing import TYPE_CHECKING

from .options import Options


if TYPE_CHECKING:
    from guardrails.policy.policy import Policy

    from .calls import Calls


SHIPPED = frozenset({"default", "strict", "observe"})
"""Policies that are known to be right."""


def checked(options: Options) -> "Policy | None":
    """
    The policy of *options*, if it has to be read to know whether it is right; None: it is.

    Raises PolicyError with all its mistakes, OSError where it cannot be read.
    """
    return None if options.policy in SHIPPED else _policy(options)


def calls_of(options: Options, policy: "Policy | None" = None) -> "Calls":
    """
    The guards that *options* ask for, by *policy* if that was read already.

    Raises PolicyError and OSError as `checked` does, StoreError where the store cannot be opened.
    """
    from guardrails.stores.memory import MemoryStore

    from .calls import Calls

    policy = policy or _policy(options)
    if options.store is None:
        store: object = MemoryStore()
    else:
        from guardrails.stores.sqlite import SqliteStore

        store = SqliteStore(options.store)
    return Calls(
        policy,
        named=options.session,
        drop=options.structured == "drop",
        store=store,
        records=options.records,
        scopes=scopes_of(options, policy),
    )


def scopes_of(options: Options, policy: "Policy") -> dict[str, str]:
    """
    Whose calls they are, for the scopes that *policy* has.

    Raises PolicyError for a scope that the options do not say.
    """
    from guardrails.core.engine.scopes import GLOBAL
    from guardrails.core.values.errors import PolicyError

    said = {"user": options.user, "tenant": options.tenant}
    mistakes = [
        f"the policy limits the scope `{name}`: say whose these calls are by `--{name} ID`"
        if name in said
        else f"the policy limits the scope `{name}`, which the proxy does not know"
        for name in policy.scopes
        if name != GLOBAL and said.get(name) is None
    ]
    if mistakes:
        raise PolicyError(mistakes)
    return {name: whose for name, whose in said.items() if whose is not None and name in policy.scopes}


def _policy(options: Options) -> "Policy":
    from guardrails.policy.compiled.loading import load_compiled

    policy = load_compiled(options.policy)
    scopes_of(options, policy)
    return policy
