"""
The rules of the real API that keep a conversation whole: what breaks one is refused. Unknown fields are tolerated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .replies import NAME, Body, Fail, refused


def tools_problem(body: Body, name_of: Callable[[Any], Any]) -> Fail | None:
    """
    Returns the refusal of the tools of a request or of its choice among them, if there is one. *name_of* gives the name in an entry
    of the wire; None: the tool is the API's own.
    """
    tools, choice = body.get("tools"), body.get("tool_choice")
    if not isinstance(body.get("model"), str):
        return refused("you must provide a model parameter", "model")
    if tools is not None and not isinstance(tools, list):
        return refused("Invalid 'tools': expected an array.", "tools")
    names = [name_of(tool) for tool in tools or ()]
    for place, name in enumerate(names):
        if name is not None and not NAME.fullmatch(str(name)):
            return refused(f"Invalid 'tools[{place}]': its name must match {NAME.pattern}.", f"tools[{place}]")
    if choice in (None, "none", "auto") or (choice == "required" and tools):
        return None
    if not isinstance(choice, dict):
        return refused("Invalid value for 'tool_choice'.", "tool_choice")
    allowed = choice.get("allowed_tools", choice).get("tools") if choice.get("type") == "allowed_tools" else [choice]
    lacking = [name_of(one) for one in allowed or [{}] if name_of(one) not in names]
    return refused(f"Invalid 'tool_choice': '{lacking[0]}' not found in 'tools'.", "tool_choice") if lacking else None


def calls_problem(
    items: Sequence[Body],
    calls_of: Callable[[Body], Iterable[str]],
    answered: Callable[[Body], str | None],
    *,
    key: str,
    adjacent: bool,
) -> Fail | None:
    """
    Returns the refusal of a call among *items* that has no result, or of a result that has no call. With *adjacent* the results
    stand right behind their calls. The request has the items by *key*.
    """
    waiting: Counter[str] = Counter()
    for place, item in enumerate(items):
        id_ = answered(item)
        if id_ is None and adjacent and +waiting:
            return _unanswered(waiting, f"{key}[{place}]")
        if id_ is not None and waiting[id_] < 1:
            return refused(f"The result for '{id_}' is no response to a preceding call.", f"{key}[{place}]")
        waiting.subtract([id_] if id_ is not None else [])
        waiting.update(calls_of(item))
    return _unanswered(waiting, key) if +waiting else None


def _unanswered(waiting: Counter[str], at: str) -> Fail:
    return refused(f"The following calls did not have response messages: {', '.join(+waiting)}", at)
