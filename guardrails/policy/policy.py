"""
A policy: the guards and settings of a kind of session.
"""

import os

from collections.abc import Callable, Iterable, Mapping
from math import inf
from os import PathLike
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypedDict, Unpack
from weakref import WeakValueDictionary

from .reload import LOOK_S, Contents, PolicyFiles, is_name


# All else is imported when a policy is made: `from guardrails import Policy` is what starts of programs wait for.
if TYPE_CHECKING:
    from guardrails.core.chain import Chain, Rule
    from guardrails.core.decision import Decision
    from guardrails.core.envelope import Form
    from guardrails.core.guards.base import Guard
    from guardrails.core.tool import Tool
    from guardrails.core.values.types import Mode
    from guardrails.core.values.usage import Price
    from guardrails.otel import Telemetry
    from guardrails.session.calls import Approver
    from guardrails.session.session import Session
    from guardrails.sinks import Sink
    from guardrails.stores import Store

    from .models import ModelFiles


class SessionOptions(TypedDict, total=False):
    """
    The options of `Policy.session`, beside a name.
    """

    tools: "Iterable[Tool | Callable[..., Any]]"
    store: "Store | None"
    records: "Sink | str | PathLike[str] | None"
    clock: Callable[[], float]
    on_decision: "Callable[[Decision], object] | None"
    on_warning: "Callable[[str, str], object] | None"
    scopes: Mapping[str, str] | None
    approver: "Approver | None"
    sleep: Callable[[float], object] | None
    telemetry: "Telemetry | None"


class Covered(NamedTuple):
    """
    The part of a tool that a policy knows, as `Policy.coverage` tells it.
    """

    tool: str
    declared: bool
    priced: bool
    """False: no `cost_usd` is declared, and it counts as free until it says what it has cost."""
    guards: tuple[str, ...]
    """The guards that are enforced for it."""


class Policy:
    """
    Guards in order, tools, prices and the form of the envelope; sessions are made of it.

    The *guards* stand in the library's order, a person's own before `truncate`, which bounds the messages of all
    others. The *tools* are `Tool`s or plain functions; with *by_name* the words of a name tell looks from work where
    nothing is declared. The optional envelope fields are *fields* (None: all). The
    mapping *prices* gives a `Price` for a model's name or glob. The mapping *messages* gives a code a wording of one's
    own: `{"duplicates.window": {"message": "...", "hint": "..."}}`, with `$limit`, `$used` and the like. If a number it
    uses is missing, the library's own words stand. The mapping *scopes* gives a scope, such as `user`, the guards of
    all its sessions together: `Budget`, `Rate`, `RetryBudget`, a person's own. The *kinds* are guards of one's own that
    only *rules* set. With the reason *stop* every call is refused. Raises PolicyError listing everything that is wrong.
    """

    due_s = 0.0
    """When it is to `look` again, by `time.monotonic`."""
    files: PolicyFiles | None = None
    """The files it is made of, as long as they are looked at."""
    digest: str | None = None
    """The digest of the contents of its files. None if they are not looked at."""
    changed: bool = False
    """Whether its files have changed since it was loaded."""

    def __init__(
        self,
        guards: "Iterable[Guard]" = (),
        *,
        tools: "Iterable[Tool | Callable[..., Any]]" = (),
        rules: "Iterable[Rule]" = (),
        mode: "Mode" = "enforce",
        stop: str | None = None,
        on_error: Literal["deny", "allow"] = "deny",
        by_name: bool = False,
        envelope: "Form | None" = None,
        fields: Iterable[str] | None = None,
        prices: "Mapping[str, Price | Mapping[str, float]] | None" = None,
        messages: Mapping[str, Mapping[str, str]] | None = None,
        scopes: "Mapping[str, Iterable[Guard]] | None" = None,
        kinds: "Iterable[type[Guard]]" = (),
        name: str = "policy",
    ) -> None:
        from guardrails.core.refusals import stopped
        from guardrails.session.results import Results
        from guardrails.stores.memory import MemoryStore

        from .check import chains_of, checked_settings

        given: dict[str, Any] = {"mode": mode, "stop": stop, "on_error": on_error, "by_name": by_name, "prices": prices}
        given |= {"envelope": envelope, "messages": messages, "fields": None if fields is None else sorted(fields)}
        checked = checked_settings(guards, kinds, scopes, tools, rules, **given)
        self.name = name
        self.chain, self.scopes = chains_of(checked)
        """The guards of sessions; and those of each scope, by its name."""
        self.stop = None if stop is None else stopped(stop)
        """Why every call is refused; None: calls are decided."""
        self.prices: dict[str, Price] = checked.get("prices", {})
        self.results = Results()
        self._store = MemoryStore()
        # A service may give each session a file of its own: a sink lives as long as a session, or its thread, needs it.
        self._sinks: WeakValueDictionary[str, Sink] = WeakValueDictionary()
        self.model_files: ModelFiles | None = None
        asking = [one for one in (*self.chain.guards, *self.chain.ruled()) if one.model_kind is not None]
        if files := {path: str(one.model_kind) for one in asking if (path := getattr(one, "model", None)) is not None}:
            from . import models

            self.chain.models = self.model_files = models.ModelFiles(files)

    @classmethod
    def load(
        cls,
        source: str | PathLike[str],
        *,
        guards: "Iterable[Guard | type[Guard]]" = (),
        tools: "Iterable[Tool | Callable[..., Any]]" = (),
        reload: float | None = LOOK_S,
        envelope: "Form | None" = None,
    ) -> Self:
        """
        Returns the policy of a file, or of a name that is shipped: `default`, `strict`, `observe`. The *guards* are
        added to those of the file. For a class, a key of its name in the file says whether it stands there, and how. If
        the file changes, or one that it extends, its sessions go by it from their next call on. It is looked at every
        *reload* seconds at most, never if that is None. If it names no form of the envelope, that is *envelope*. Raises PolicyError with every mistake as file:line:column.
        """
        from .file import Document

        own, known, path = list(guards), list(tools), os.path.abspath(source)

        def load(source: str | PathLike[str]) -> tuple[Self, Contents]:
            document = Document(source, own)
            return cls(tools=known, **{"envelope": envelope, **document.arguments()}), document.contents()

        made: Self
        made, contents = load(source)
        if reload is not None and not is_name(os.fspath(source)):
            # A name is a file of the library, which no one edits.
            made.files = PolicyFiles(contents, lambda: load(path), every_s=reload)
            made.digest = made.files.digest
        return made

    def look(self) -> None:
        """
        Look whether its files have changed. A mistake in a file is logged, and changes nothing.
        """
        if self.files is not None:
            self.files.look(self)
        # Last: a look that a signal breaks off is made again at once.
        self.due_s = inf if self.files is None else monotonic() + self.files.every_s

    @staticmethod
    def schema(guards: "Iterable[type[Guard]]" = ()) -> dict[str, Any]:
        """
        Returns the JSON Schema of policy files, for editors; with the keys of *guards* of one's own.
        """
        from .check import file_schema

        return file_schema(guards)

    def session(self, name: str, **options: Unpack[SessionOptions]) -> "Session":
        """
        Returns the session *name*: the calls that share a budget.

        Without these *options* it is in memory, without records and by the real clock:

        * `tools`: tools of its own, beside those of the policy.
        * `store`: the same name on the same store is the same session. It goes on until its `forget`, even if it was closed.
        * `records`: a sink, or the path of a file of JSON lines.
        * `scopes`: its owners, for each scope of the policy: `{"user": "u1"}`.
        * `approver`: asked by `call` and `acall` about a call that waits for a person. Without one the call waits until `session.approve` or
          `session.refuse`.
        * `telemetry`: an object that tells of its calls.
        * `on_decision`: called with each decision.
        * `on_warning`: called with the code and the text of each warning, such as that a limit is near.
        * `clock`: tells the time in seconds, as `time.time` does.
        * `sleep`: called with the seconds before a retry of the library's own.

        Raises PolicyError if a tool is not valid, SessionError if the name or a scope is not.
        """
        from guardrails.session.session import Session

        from .check import checked_settings

        given: dict[str, Any] = {"clock": time, **options}
        telemetry, store = given.pop("telemetry", None), given.pop("store", None)
        own = given.pop("tools", ())
        tools = [*checked_settings(tools=own)["tools"].values()] if own else []
        return (Session if telemetry is None else telemetry.session)(
            self,
            name,
            layers=(lambda chain: chain.with_tools(tools),) if tools else (),
            store=self._store if store is None else store,
            sink=self._sink(given.pop("records", None)),
            scopes=_owners(self.scopes, given.pop("scopes", None) or {}),
            **given,
        )

    def _sink(self, records: "Sink | str | PathLike[str] | None") -> "Sink | None":
        if records is None or not isinstance(records, (str, PathLike)):
            return records
        from guardrails.sinks import JsonLines

        path = os.path.abspath(records)
        return self._sinks.get(path) or self._sinks.setdefault(path, JsonLines(path))

    def coverage(self, tools: "Iterable[Tool | Callable[..., Any] | str]") -> list[Covered]:
        """
        Returns the cover of each of *tools*: declared, priced and guarded. It is the honest answer to "is everything
        covered?". A tool without a price is free, whether or not there is a cost limit.
        """
        from guardrails.core.tool import Tool

        named = [Tool.of(tool).name if callable(tool) else getattr(tool, "name", str(tool)) for tool in tools]
        plans = [(name, self.chain.plan(name)) for name in named]
        return [
            Covered(name, name in self.chain.tools or plan.tool != Tool(name=name), plan.tool.cost > 0, plan.enforced)
            for name, plan in plans
        ]

    def __str__(self) -> str:
        shared = "".join(f"\nscope `{name}`\n{chain}" for name, chain in self.scopes.items())
        return f"{self.name}\n{self.chain}{shared}"

    __repr__ = __str__


def unheld(policy: Policy, missing: Mapping[str, str]) -> str:
    """
    Returns in words which limits of *policy* a host cannot hold, as some of what guards need is *missing*, each with the reason; empty if it
    holds all. The shipped `default` is for every host: its own limits are not told of.
    """
    inert = [one[:2] for one in policy.chain.needs() - Policy.load("default").chain.needs()]
    inert += [(f"{scope}.{name}", need) for scope, own in policy.scopes.items() for name, need, _ in own.needs()]
    told = {why: sorted(name for name, needed in inert if needed == need) for need, why in missing.items()}
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in told.items() if names)


def _owners(chains: "Mapping[str, Chain]", given: Mapping[str, str]) -> "tuple[tuple[str, str, Chain], ...]":
    """
    Returns (name, id, chain) of each scope, for a session of which *given* says whose it is.

    Raises SessionError if a scope is not said, not known or not validly named.
    """
    from guardrails.core.scopes import GLOBAL
    from guardrails.core.values.errors import SessionError
    from guardrails.core.values.names import checked_id

    owners = {GLOBAL: GLOBAL, **given} if GLOBAL in chains else given
    if owners.keys() != chains.keys():
        shown = ", ".join(f'"{name}": ...' for name in chains if name != GLOBAL)
        fix = f"write whose the session is, `policy.session(name, scopes={{{shown}}})`"
        raise SessionError(f"the scopes of the policy are {', '.join(chains) or 'none'}: {fix}")
    ids = {name: checked_id(owners[name], f"the id of the scope `{name}`") for name in chains}
    return tuple((name, ids[name], chain) for name, chain in chains.items())
