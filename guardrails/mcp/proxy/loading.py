"""
The guards as the options of the command say, and what is wrong with them before a server is started.
"""

import threading

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from .options import Options


if TYPE_CHECKING:
    from guardrails.policy.policy import Policy

    from .calls import Calls


MAX_WHO: Final = 1_000
"""Users whose guards are kept made."""
SHIPPED: Final = frozenset({"default", "strict", "observe"})
"""Policies that are known to be right."""


def checked(options: Options) -> "Policy | None":
    """
    The policy of *options*, if it has to be read to know whether it is right; None: it is.

    Raises PolicyError with all its mistakes, OSError if it cannot be read.
    """
    return None if options.policy in SHIPPED else _policy(options)


def calls_of(options: Options, policy: "Policy | None" = None) -> "Calls":
    """
    The guards that *options* ask for, by *policy* if that was read already.

    Raises PolicyError and OSError as `checked` does, StoreError if the store cannot be opened.
    """
    return Guards(options, policy).calls(options.user, options.tenant)


class Guards:
    """
    The guards of several users, by one policy and with one store. Raises as `calls_of` does.
    """

    def __init__(self, options: Options, policy: "Policy | None" = None) -> None:
        from guardrails.integrations.otel import of_process
        from guardrails.mcp.pins.pins import Pins, pins_file
        from guardrails.stores.memory import MemoryStore
        from guardrails.stores.places import store_at

        self._options = options
        self._policy = policy or _policy(options)
        self._store = MemoryStore() if options.store is None else store_at(options.store)
        self._pins = None if options.pins == "none" else Pins(options.pins or pins_file())
        self._telemetry = of_process()
        self._made: OrderedDict[tuple[str | None, str | None], Calls] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, user: str | None, tenant: str | None) -> "Calls":
        """
        The guards of *user* and *tenant*, the same each time; those of `MAX_WHO` are kept.
        """
        with self._lock:
            made = self._made.pop((user, tenant), None)
            if made is None:
                made = self.calls(user, tenant)
            self._made[user, tenant] = made
            if len(self._made) > MAX_WHO:
                self._made.popitem(last=False)
        return made

    def close(self) -> None:
        """
        Flush the records.
        """
        for made in self._made.values():
            made.close()

    def calls(self, user: str | None, tenant: str | None) -> "Calls":
        """
        The guards of *user* and *tenant*.
        """
        from guardrails.mcp.pins.pins import server_of

        from .calls import Calls

        options = self._options
        return Calls(
            self._policy,
            named=options.session,
            drop=options.structured == "drop",
            pins=self._pins,
            server=server_of(options.command, options.url, options.server),
            store=self._store,
            records=options.records,
            telemetry=self._telemetry,
            scopes=scopes_of(options._replace(user=user, tenant=tenant), self._policy),
        )


def scopes_of(options: Options, policy: "Policy") -> dict[str, str]:
    """
    Whose calls they are, for the scopes that *policy* has.

    Raises PolicyError for a scope that the options do not say.
    """
    from guardrails.core.scopes import GLOBAL
    from guardrails.core.values.errors import PolicyError

    said = {"user": options.user, "tenant": options.tenant}
    told = {
        "user": options.identity_header or options.token_key,
        "tenant": options.tenant_header or options.tenant_claim,
    }
    mistakes = [
        f"the policy limits the scope `{name}`: say whose these calls are by `--{name} ID`"
        if name in said
        else f"the policy limits the scope `{name}`, which the proxy does not know"
        for name in policy.scopes
        if name != GLOBAL and said.get(name) is None and told.get(name) is None
    ]
    if mistakes:
        raise PolicyError(mistakes)
    return {name: whose for name, whose in said.items() if whose is not None and name in policy.scopes}


def _policy(options: Options) -> "Policy":
    from guardrails.policy.policy import Policy

    policy = Policy.load(options.policy, envelope="quiet")
    scopes_of(options, policy)
    return policy
