"""
A policy of PolicyLayer Intercept as one of this library: its YAML, version "1".

Of windows a day is a day of UTC; a minute and an hour slide here, and are those of the clock there. Counters are of all sessions together.
"""

import json
import re

from collections.abc import Iterator
from typing import Any, Final

import yaml

from guardrails.offline.figures import one_line


KEYS: Final = {"version", "description", "default", "hide", "tools"}
WINDOWS: Final = {"minute": "1m", "hour": "1h", "day": "day"}
COMPARISONS: Final = {"eq": "==", "neq": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
OPERATORS: Final = {
    **{name: f"{{path}} {sign} {{value}}" for name, sign in COMPARISONS.items()},
    "in": "{path} in {value}",
    "not_in": "!({path} in {value})",
    "regex": "{path}.matches({value})",
    "contains": "(type({path}) == list ? {value} in {path} : {path}.contains({value}))",
}


def converted(text: str) -> tuple[str, dict[str, str]]:
    """
    Returns the text of the policy that the Intercept policy *text* stands for, and why places of it have no counterpart here. Raises ValueError if
    it is none.
    """
    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(given, dict) or given.get("version") != "1" or not isinstance(given.get("tools"), dict):
        raise ValueError('a policy of Intercept has `version: "1"` and a map of `tools`')
    unmapped = dict.fromkeys((name for name in given if name not in KEYS), "it is not known")
    settings: dict[str, Any] = {"version": 1, "rules": []}
    names = [name for name in given["tools"] if name != "*"] or ["(none)"]
    chosen = {"allow": names if given.get("default") == "deny" else [], "deny": given.get("hide") or []}
    settings |= {"tool_filter": chosen} if any(chosen.values()) else {}
    for tool, entry in given["tools"].items():
        for number, rule in enumerate((entry or {}).get("rules") or ()):
            try:
                settings["rules"] += [{"tools": tool, **one} for one in _rules(tool, rule)]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                unmapped[f"tools.{tool}.rules.{number}"] = str(error).strip("'")
    comments = [one_line(f"# Not mapped: {place}: {why}") + "\n" for place, why in unmapped.items()]
    return "".join(comments) + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=110), unmapped


def _rules(tool: str, rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """
    Returns the rules that one of Intercept stands for: all of its conditions must hold. Raises ValueError for what has no counterpart.
    """
    text = rule.get("on_deny") or rule.get("name") or "the policy forbids it"
    if rule.get("action", "evaluate") == "deny":
        yield {"deny": text}
    elif "rate_limit" in rule:
        rate = re.fullmatch("([1-9][0-9]*)/(minute|hour|day)", str(rule["rate_limit"]))
        if rate is None:
            raise ValueError(f"rate_limit `{rule['rate_limit']}`")
        yield {"limit": _limit(int(rate[1]), rate[2], "")}
    else:
        state, of_arguments = rule.get("state") or {}, []
        counter = f"state.{'_global' if tool == '*' else tool}.{state.get('counter')}"
        for condition in rule["conditions"]:
            path, op, value = condition["path"], condition["op"], condition["value"]
            if path.startswith("args."):
                of_arguments.append(_condition(path, op, value))
            elif path == counter and op in ("lt", "lte"):
                increment = state.get("increment_from") or str(state.get("increment", ""))
                # Its limits are whole numbers.
                yield {"limit": _limit(int(value) - (op == "lt"), state["window"], increment)}
            else:
                raise ValueError(f"a condition on `{path}` with `{op}`")
        if of_arguments:
            yield {"when": f"!({' && '.join(of_arguments)})", "deny": text}


def _limit(most: float, window: str, increment: str) -> dict[str, Any]:
    return {"max": most, "per": WINDOWS[window], "scope": "global"} | ({"sum": increment} if increment else {})


def _condition(path: str, op: str, value: Any) -> str:
    names = path.split(".")
    there = " && ".join(f"has({'.'.join(names[: end + 1])})" for end in range(1, len(names)))
    written = json.dumps(value, ensure_ascii=False)
    if op not in {*OPERATORS, "exists"} or not re.fullmatch(r"[\w.]+", path):
        raise ValueError(f"a condition on `{path}` with `{op}`")
    if op == "exists":
        return there if value else f"!({there})"
    return f"{there} && {OPERATORS[op].format(path=path, value=written)}"
