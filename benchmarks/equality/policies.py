"""
Policies for random sessions: the shipped ones, and others with settings drawn at random, as a file or in code.
"""

import json

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from guardrails import (
    Budget,
    Denial,
    Denials,
    Duplicates,
    Envelope,
    Facts,
    Growth,
    Guard,
    Nudge,
    Outcome,
    Policy,
    Price,
    Rate,
    Retryable,
    Rule,
    SessionState,
    Shell,
    Streak,
    Summary,
    Tool,
    ToolCall,
    ToolFilter,
    Truncate,
    Validation,
    Workspace,
    guard,
)


SHIPPED: Final = ("default", "strict", "observe", "agent")
Settings = dict[str, Any]

_OFTEN: Final = 0.8
"""How likely a policy has a guard that says little about most calls."""
OPTIONS: Final[Mapping[str, tuple[float, Mapping[str, tuple[Any, ...]]]]] = {
    "budget": (
        0.6,
        {
            "max_calls": (6, 14, 30),
            "max_turns": (3, 9),
            "max_cost_usd": (0.3, 1.0, 5.0),
            "max_tokens": (300, 4000),
            "max_elapsed": (20, 900),
            "final_answer_reserve_usd": (0.05,),
            "on_unpriced": ("warn", "deny"),
        },
    ),
    "growth": (
        0.6,
        {"max_calls_per_second": (3, 8), "max_requests_per_second": (2, 5), "max_tokens_per_minute": (500, 5000)},
    ),
    "rate": (0.3, {"max_calls_per_second": (1, 4), "max_calls_per_minute": (3, 12)}),
    "streak": (0.4, {"max_same": (3, 6), "max_failures": (2, 4)}),
    "denials": (0.5, {"max_turns_in_a_row": (1, 2, 4)}),
    "duplicates": (_OFTEN, {"window": (1, 4, 20, 40), "rule": ("always", "evidence", "evidence")}),
    "loops": (
        0.7,
        {
            "identical_nudge": (1, None),
            "identical_deny": (2, 4),
            "unrepaired_nudge": (1,),
            "unrepaired_deny": (1, 3),
            "reread_deny": (2, 3),
            "settled_for": (5, None),
            "cycle_nudge": (1, 2),
            "cycle_deny": (2, None),
            "same_error_nudge": (2, 3),
            "same_error_deny": (3, 5),
            "sibling_errors_nudge": (2,),
            "sibling_errors_deny": (3, 6),
            "unknown_tool_deny": (2, 4),
            "volatile_argument_deny": (2, 5),
            "reworded_nudge": (2, 3),
            "reworded_deny": (3, 5),
            "empty_nudge": (2, 4),
            "empty_deny": (3, 6),
            "wait_nudge": (1, 2),
            "final_after": (1, 2),
            "model": ("default",),
            "model_nudge": (0.3, 0.6),
            "model_deny": (0.5, 0.8),
        },
    ),
    "validation": (_OFTEN, {}),
    "tool_filter": (
        0.5,
        {"deny": (["rm_*"], ["delete_*", "rm_*"]), "allow": (["*_*", "bash", "pay"],), "unknown": ("allow", "deny")},
    ),
    "workspace": (0.5, {"also": (["/srv/shared"],)}),
    "shell": (
        0.7,
        {
            "deny": (["sudo", "rm {-r,-R} * /"],),
            "allow": (["ls", "git {status,log}"],),
            "undecidable": ("allow", "deny"),
        },
    ),
    "retryable": (
        _OFTEN,
        {
            "max_retries": (0, 1, 3),
            "max_same_error": (1, 2),
            "backoff": (0.5, 4),
            "max_wait": (2, 60),
            # There is no such file, so that the shipped beliefs are asked.
            "model": ("retries.json",),
            "explore": (0.1,),
        },
    ),
    "summary": (_OFTEN, {"query": (False,), "total": (False,)}),
    "truncate": (_OFTEN, {"max_bytes": (256, 1024)}),
}
"""By guard: how likely a policy has it, and what each of its settings may be."""
GUARDS: Final[Mapping[str, type[Guard]]] = {
    "budget": Budget,
    "growth": Growth,
    "rate": Rate,
    "streak": Streak,
    "denials": Denials,
    "duplicates": Duplicates,
    "validation": Validation,
    "tool_filter": ToolFilter,
    "workspace": Workspace,
    "shell": Shell,
    "retryable": Retryable,
    "summary": Summary,
    "truncate": Truncate,
}
"""Those whose settings are the same in code as in a file."""
DURATIONS: Final = ("max_elapsed", "backoff", "max_wait")
MESSAGES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "budget.max_calls": ("budget", {"message": "No more than $limit calls.", "hint": "Say what you know."}),
    "duplicates.window": ("duplicates", {"message": "You have that already."}),
    "tool_filter.unknown": ("tool_filter", {"message": "Unknown. There are: $tools.", "hint": "Choose one."}),
}
"""A code, the guard that says it, and other words for it."""
RULES: Final[tuple[tuple[str, Settings, Mapping[str, Settings]], ...]] = (
    ("pay*", {"idempotent": False, "cost_usd": 0.05}, {"budget": {"max_calls": 2}}),
    ("search*", {"stable": True}, {"budget": {"max_turns": 3}}),
    ("get_news", {"cost_usd": 0.02}, {"budget": {"max_cost_usd": 0.05}}),
    ("read_*", {"read_only": True}, {"budget": {"max_tokens": 5}}),
    ("list_*", {"read_only": True}, {"rate": {"max_calls_per_minute": 4}}),
    ("srv__*", {"retryable": True}, {"rate": {"max_calls_per_second": 1}}),
    ("job_status", {"polling": True}, {"budget": {"max_elapsed": 3}}),
    ("delete_*", {"idempotent": True}, {"duplicates": {"rule": "always", "window": 9}}),
    ("bash", {"commands": ["command"], "timeout": 60}, {}),
    ("write_file", {"paths": ["path"], "ask_user": ["path"]}, {}),
    ("judged", {"result": {"status_field": "state", "ok_values": ["done"]}}, {"truncate": {"max_bytes": 300}}),
)
"""Of a policy's `tools:`: what it matches, what it declares, settings by guard."""


@guard
class Moody(Guard):
    """
    A guard of a user's own: it objects, advises, counts, shapes and fails, each by what a call's arguments say.
    """

    most: int = 4

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Denial | Nudge | None:
        mood = call.arguments.get("mood") if isinstance(call.arguments, dict) else None
        if mood == "raise":
            raise LookupError("no mood today")
        if mood == "deny" or state.meter("moody") >= self.most:
            return Denial(code="moody.deny", message="Not in the mood.", hint="Come back later.", values={"n": 1})
        if mood == "nudge":
            return Nudge(code="moody.nudge", hint="A smile would help.")
        return None

    def charge(self, call: ToolCall, state: SessionState, facts: Facts) -> dict[str, int]:
        moody = isinstance(call.arguments, dict) and "mood" in call.arguments
        return {"moody": state.meter("moody") + 1} if moody else {}

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, facts: Facts
    ) -> Envelope:
        if isinstance(call.arguments, dict) and call.arguments.get("mood") == "shape":
            envelope.nudge("Shaped by mood.")
        return envelope


def policy_of(number: int, rng: Random, tools: list[Tool]) -> Policy:
    """
    The policy of session *number*: every other one is shipped; *tools* are declared in some of them.

    A file of settings is written into the working folder.
    """
    declared = tools if rng.random() < 0.4 else []
    if number % 2 == 0:
        moody = [Moody()] if rng.random() < 0.3 else []
        return Policy.load(SHIPPED[number // 2 % len(SHIPPED)], guards=moody, tools=declared)
    settings = {name: _settings(name, rng) for name, (likely, _) in OPTIONS.items() if rng.random() < likely}
    rules = [rule for rule in RULES if rng.random() < 0.7]
    whole: Settings = {
        "mode": rng.choice(("enforce", "enforce", "enforce", "enforce", "observe")),
        "on_error": rng.choice(("deny", "allow")),
        "envelope": rng.choice(("nested", "merged")),
        "messages": {
            code: words for code, (name, words) in MESSAGES.items() if name in settings and rng.random() < 0.3
        },
        "prices": {"priced-*": {"input_mtok": 0.25, "output_mtok": 2.0}},
    }
    if rng.random() < 0.2:
        whole["fields"] = ["total_matches", "next_action_hint"]
    scopes = {"user": {"budget": {"max_calls": rng.choice((8, 40)), "max_cost_usd": 1.0}}} if rng.random() < 0.6 else {}
    if scopes and rng.random() < 0.5:
        scopes["tenant"] = {"rate": {"max_calls_per_minute": 25}, "growth": {"max_calls_per_second": 6}}
    own: list[Guard] = [Moody()] if rng.random() < 0.5 else []
    # In code the settings of `Loops` have another form.
    if "loops" in settings or rng.random() < 0.3:
        return _from_file(settings, rules, {**whole, **({"scopes": scopes} if scopes else {})}, own, declared)
    guards = [_made(name, values) for name, values in settings.items()]
    shared = {name: [_made(*each) for each in inner.items()] for name, inner in scopes.items()}
    prices = {"priced-*": Price(input_mtok=0.25, output_mtok=2.0)}
    made = [Rule(match=match, declared=_declared(said), guards=inner) for match, said, inner in rules]
    return Policy([*guards, *own], tools=declared, rules=made, scopes=shared, **{**whole, "prices": prices})


def _settings(name: str, rng: Random) -> Settings:
    drawn = {key: rng.choice(values) for key, values in OPTIONS[name][1].items() if rng.random() < 0.5}
    if rng.random() < 0.1:
        drawn["mode"] = rng.choice(("observe", "off"))
    return drawn


def _from_file(settings: Settings, rules: list[Any], whole: Settings, own: list[Guard], tools: list[Tool]) -> Policy:
    listed = [{"match": match, **declared, **inner} for match, declared, inner in rules]
    Path("policy.yaml").write_text(json.dumps({"version": 1, **whole, **settings, "tools": listed}))
    return Policy.load("policy.yaml", guards=own, tools=tools)


def _made(name: str, settings: Settings) -> Guard:
    plain: Settings = {key: float(value) if key in DURATIONS else _tuple(value) for key, value in settings.items()}
    return GUARDS[name](**plain)


def _declared(settings: Settings) -> Settings:
    return {key: _tuple(value) for key, value in settings.items() if key != "result"}


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
