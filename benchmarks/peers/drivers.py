"""
Other packages behind one interface: a driver calls a package as its own README says, with the limits that a work asks for.

A driver is a function of `Limits` that returns a `Peer`. Its package is imported in it, so that each runs in an environment of its own.
"""

import contextvars
import itertools
import json
import threading

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Protocol


Said = Literal["ran", "hinted", "refused"]
Run = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What a work asks for; None: no such limit.
    """

    calls: int | None = None
    usd: float | None = None
    price: float = 0.0
    """USD that each call costs."""
    repeats: bool = False
    """Whether loops and repeats are watched."""
    clock: Callable[[], float] | None = None
    """Seconds; None: the real clock."""


class Peer(Protocol):
    """
    One run of an agent behind a package.
    """

    def __call__(self, tool: str, arguments: dict[str, Any], run: Run) -> Said:
        """
        Returns what the caller is told of the call: `refused` also if the tool ran and its result is withheld.

        *run* gives the tool's result, or raises what the tool raised.
        """


class Unfit(Exception):
    """
    The package has no such feature.
    """


def _peer(act: Callable[[str, dict[str, Any], Run], Said | None], *refusals: type[BaseException]) -> Peer:
    """
    Returns a peer that makes calls by *act*, which gets a tool that gives its exception back; it refuses by one of *refusals*.
    """

    def call(tool: str, arguments: dict[str, Any], run: Run) -> Said:
        try:
            return act(tool, arguments, partial(_outcome, run)) or "ran"
        except refusals:
            return "refused"

    return call


def guardrails(limits: Limits) -> Peer:
    """
    This library: the shipped policy `default` for repeats, a budget for the rest.
    """
    from guardrails import Budget, Policy, Tool

    budget = Budget(max_calls=limits.calls, max_cost_usd=limits.usd)
    if limits.repeats:
        loaded = Policy.load("default", reload=None)
        # Its limits are for whole sessions; a story is shorter, and what it asks is judged by guards of repeats.
        kept = [g for g in loaded.chain.guards if g.name not in ("denials", "budget", "growth")]
        policy = Policy(
            [budget, *kept], tools=loaded.chain.tools.values(), rules=loaded.chain.rules, by_name=loaded.chain.by_name
        )
    else:
        policy = Policy([budget], tools=[Tool(name="work", cost_usd=limits.price)])
    session = policy.session("run") if limits.clock is None else policy.session("run", clock=limits.clock)

    def act(tool: str, arguments: dict[str, Any], run: Run) -> Said:
        if limits.clock is None:
            envelope = session.call(tool, arguments, lambda _tool, _arguments: run())
            return "ran" if envelope.status in ("success", "error") else "refused"
        session.begin_turn()
        decision = session.decide(tool, arguments)
        if not decision.allowed:
            return "refused"
        session.complete(decision, run())
        return "hinted" if decision.nudges else "ran"

    return _peer(act)


def aura_guard(limits: Limits) -> Peer:
    """
    Its calls are capped per tool; a work has one tool only where it asks for a cap.
    """
    from aura_guard import AgentGuard, PolicyAction

    caps = {"max_cost_per_run": limits.usd, "default_tool_cost": limits.price, "max_calls_per_tool": limits.calls}
    guard = AgentGuard(secret_key=b"k" * 16, **caps)

    def act(tool: str, arguments: dict[str, Any], run: Run) -> Said | None:
        if guard.check_tool(tool, args=arguments).action != PolicyAction.ALLOW:
            return "refused"
        result = run()
        code = type(result).__name__ if isinstance(result, Exception) else None
        guard.record_result(ok=code is None, payload=None if code else result, error_code=code)
        return None

    return _peer(act)


def agentguard47(limits: Limits, *, fuzzy: bool = True) -> Peer:
    """
    Both its guards of repeats, or `LoopGuard` alone. Each call is charged before it runs, so that calls at once find the limit.
    """
    from agentguard import AgentGuardError, BudgetGuard, FuzzyLoopGuard, LoopGuard

    capped = limits.calls is not None or limits.usd is not None
    budget = BudgetGuard(max_calls=limits.calls, max_cost_usd=limits.usd) if capped else None
    watches: list[Any] = []
    if limits.repeats:
        watches = [LoopGuard(), FuzzyLoopGuard()] if fuzzy else [LoopGuard()]

    def act(tool: str, arguments: dict[str, Any], run: Run) -> None:
        for watch in watches:
            watch.check(tool, arguments)
        if budget is not None:
            budget.consume(calls=1, cost_usd=limits.price)
        run()

    return _peer(act, AgentGuardError)


def tenacity(limits: Limits) -> Peer:
    """
    Three attempts at each call that fails. It refuses nothing.
    """
    from tenacity import Retrying, retry_if_result, stop_after_attempt

    if limits.calls is not None or limits.usd is not None:
        raise Unfit
    failed = retry_if_result(lambda result: isinstance(result, Exception))
    attempts = Retrying(stop=stop_after_attempt(3), retry=failed, retry_error_callback=lambda _: None)
    return _peer(lambda tool, arguments, run: attempts(run) and None)


def langchain(limits: Limits) -> Peer:
    """
    Its middleware `ToolCallLimitMiddleware`, called as the graph of an agent calls it. It knows no money.
    """
    from langchain.agents.middleware import ToolCallLimitMiddleware
    from langchain_core.messages import AIMessage

    if limits.usd is not None:
        raise Unfit
    limit = ToolCallLimitMiddleware(run_limit=limits.calls or 10**9, exit_behavior="continue")
    state: Any = {"run_tool_call_count": {}, "thread_tool_call_count": {}}

    def act(tool: str, arguments: dict[str, Any], run: Run) -> Said | None:
        state["messages"] = [AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "one"}])]
        changes: Any = limit.after_model(state, None)
        state.update(changes)
        return "refused" if "messages" in changes else run() and None

    return _peer(act)


_names = itertools.count()


def runbound(limits: Limits, *, graded: bool = False) -> Peer:
    """
    With `on_loop="break"`, its way to stop at a loop, or *graded* with `on_spike="limit"`, which restricts a run that goes on
    repeating. Its limits know no cost of a tool.
    """
    import runbound

    if limits.usd is not None:
        raise Unfit
    reaction = {"on_spike": "limit"} if graded else {"on_loop": "break"}
    loops: Mapping[str, Any] = reaction if limits.repeats else {"loop_shapes": ()}
    runbound.init(on_anomaly="raise", auto_wrap=False, **loops)
    key = f"run {next(_names)}"
    tools: dict[str, Any] = {}
    own = threading.local()

    def body(**arguments: Any) -> Any:
        own.result = own.run()
        if isinstance(own.result, Exception):
            raise own.result

    def act(tool: str, arguments: dict[str, Any], run: Run) -> None:
        if tool not in tools:
            tools[tool] = runbound.tool(body, name=tool, max_calls=limits.calls)
        own.run, own.result = run, None
        try:
            # A session is a context variable: a thread of a pool opens it by itself, as the documentation says.
            with runbound.session(key):
                tools[tool](**arguments)
        except Exception as error:
            if error is not own.result:
                raise

    return _peer(act, runbound.ExecutionRefused)


def unwedge(limits: Limits) -> Peer:
    """
    It judges a call that has run, so that it hints and stops, and refuses none; it has no budgets.
    """
    from unwedge import Guard, GuardConfig, make_provider
    from unwedge.adapters.generic import turn_from_command

    if limits.calls is not None or limits.usd is not None:
        raise Unfit
    provider = make_provider("none")
    guard = Guard(goal="the task", provider=provider, config=GuardConfig.for_provider(provider, shadow=False))
    turns = itertools.count(1)

    def act(tool: str, arguments: dict[str, Any], run: Run) -> Said:
        result = run()
        failed = isinstance(result, Exception)
        said = str(result) if failed or isinstance(result, str) else json.dumps(result, default=str)
        command = f"{tool} {json.dumps(arguments, default=str)}"
        judged = guard.on_turn(turn_from_command(next(turns), command, said, failed=failed))
        return "hinted" if judged.decision.action.value != "continue" else "ran"

    return _peer(act)


def agentbudget(limits: Limits) -> Peer:
    """
    Its decorator for tools, which counts a call once it has run; `would_exceed` is asked before. A loop is many calls of one name
    within a minute.
    """
    from agentbudget import AgentBudget

    if limits.calls is not None:
        raise Unfit
    more: Mapping[str, Any] = {} if limits.repeats else {"max_repeated_calls": 1_000_000}
    session = AgentBudget(max_spend=1_000_000.0 if limits.usd is None else limits.usd, **more).session()
    return _tracked(session, limits.price)


def _tracked(session: Any, price: float) -> Peer:
    from agentbudget import BudgetExhausted, LoopDetected

    def act(tool: str, arguments: dict[str, Any], run: Run) -> Said | None:
        if session.would_exceed(price):
            return "refused"
        session.track_tool(cost=price, tool_name=tool)(run)()
        return None

    return _peer(act, BudgetExhausted, LoopDetected)


def children_of_guardrails(usd: float, each: float, price: float) -> tuple[Peer, ...]:
    """
    Two sub-agents of one session.
    """
    from guardrails import Budget, Policy, Tool

    parent = Policy([Budget(max_cost_usd=usd)], tools=[Tool(name="work", cost_usd=price)]).session("family")

    def of(name: str, part: float) -> Peer:
        child = parent.child(name, max_cost_usd=part)
        return _peer(lambda tool, given, run: "ran" if child.call(tool, given, lambda *_: run()).ok else "refused")

    # A child that asks for more than is left is a SessionError: the second takes the rest.
    return of("a", each), of("b", round(usd - each, 6))


def children_of_agentbudget(usd: float, each: float, price: float) -> tuple[Peer, ...]:
    """
    Two child sessions of one session, both open. The spending of a child is charged to its parent when it ends.
    """
    from agentbudget import AgentBudget

    parent = AgentBudget(max_spend=usd).session()
    return tuple(_tracked(parent.child_session(max_spend=each).__enter__(), price) for _ in "ab")


def children_of_agentguard47(usd: float, each: float, price: float) -> tuple[Peer, ...]:
    """
    Two goals of one budget; a sub-agent's calls are made within its goal, in a context of its own.
    """
    from agentguard import AgentGuardError, BudgetGuard

    budget = BudgetGuard(max_cost_usd=usd)

    def of(name: str) -> Peer:
        context = contextvars.copy_context()
        context.run(budget.goal(name, lambda: True, max_cost_usd=each).__enter__)

        def act(tool: str, arguments: dict[str, Any], run: Run) -> None:
            context.run(budget.consume, calls=1, cost_usd=price)
            run()

        return _peer(act, AgentGuardError)

    return of("a"), of("b")


def _outcome(run: Run) -> Any:
    try:
        return run()
    except Exception as error:  # a tool of the work has failed
        return error


DRIVERS: Final[Mapping[str, Callable[[Limits], Peer]]] = {
    "toolcall-guardrails": guardrails,
    "agentguard47": agentguard47,
    "aura-guard": aura_guard,
    "agentbudget": agentbudget,
    "runbound": runbound,
    "unwedge": unwedge,
    "langchain": langchain,
    "tenacity": tenacity,
}
"""By the name of the distribution."""
CHILDREN: Final[Mapping[str, Callable[[float, float, float], tuple[Peer, ...]]]] = {
    "toolcall-guardrails": children_of_guardrails,
    "agentguard47": children_of_agentguard47,
    "agentbudget": children_of_agentbudget,
}
"""Those that have limits of a part within those of the whole, by whatever name."""
ALSO: Final[Mapping[str, Mapping[str, Callable[[Limits], Peer]]]] = {
    "agentguard47": {"`LoopGuard` alone": partial(agentguard47, fuzzy=False)},
    "runbound": {'`on_spike="limit"`': partial(runbound, graded=True)},
}
"""Other ways to put a package together, which are told the stories too."""
ONE_THREAD: Final = ("aura-guard", "langchain")
"""A run belongs to one thread, as their documentation says: calls at once on several are no work for them."""
OUR_TEXT: Final = ("unwedge",)
"""They are given a command's text, which the driver writes: forms of arguments say nothing of them."""
