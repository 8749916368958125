"""
The wordings that are compared: the shipped one, as a session of the library made it, and others in its place.
"""

import json

from collections.abc import Mapping
from typing import Any, Final

from .scenes import Told


HINT: Final = "next_action_hint"
PROSE: Final = ("errors", "message", "limit_message", "user_facing_hint", HINT)
"""The fields of an envelope that hold words for a reader; the others are codes, figures and results."""
NOTHING, FIELDS, SHIPPED, TEXT = "nothing", "fields only", "shipped", "as text"
FORBIDS, BIDS, BEFORE = "forbids", "bids", "before"
COLUMNS: Final = (NOTHING, FIELDS, SHIPPED, TEXT, FORBIDS, BIDS, BEFORE)
ORDERS: Final = {
    "a repeat is refused": ("Do not call $tool again.", "Answer the user now."),
    "a repeat is told": ("Do not call $tool again.", "Answer the user now."),
    "failures alike are told": ("Do not call $tool again.", "Call another tool."),
    "a tool's turn is over": ("Do not call $tool again.", "Answer the user now."),
    "arguments do not fit": (
        'Do not send $choice "$wrong".',
        'Call $tool again with $choice "$first" or "$second".',
    ),
    "an argument is missing": ("Make no call without the $key.", "Ask the user for the $key."),
    "a retry pays": ("Do not change the arguments.", "Call $tool again with the same arguments."),
    "a retry comes too early": ("Do not call $tool now.", "Do something else first."),
    "no retry pays": ("Do not call $tool again.", "Tell the user that it does not work."),
    "the last call is used up": ("Make no further call.", "Answer the user now."),
    "a call over the limit": ("Make no further call.", "Answer the user now."),
}
"""Two short orders for each scene: one forbids, one bids."""
EARLIER: Final = {
    "a repeat is told": "This exact $tool call was just answered, and nothing was done since that could change the answer."
    " Use the previous result. Where it may change by itself, wait before you look again.",
    "failures alike are told": "`$tool` failed 3 times in a row with the same error, whatever the arguments. Arguments are"
    " not the cause. Read the error: wait, look the right values up with another tool, or ask the user.",
}
"""The words of an earlier version, by scene."""


def wordings(told: Told) -> dict[str, str]:
    """
    Returns the text that stands in place of the last result, by wording.
    """
    envelope, shipped = told.envelope, str(told.body["messages"][-1]["content"])
    forbids, bids = ORDERS[told.scene.name]
    made = {
        NOTHING: told.plain[-1],
        FIELDS: _with(envelope, None),
        SHIPPED: shipped,
        TEXT: words_of(shipped),
        FORBIDS: _with(envelope, _filled(forbids, told)),
        BIDS: _with(envelope, _filled(bids, told)),
    }
    if told.scene.name in EARLIER:
        made[BEFORE] = _with(envelope, _filled(EARLIER[told.scene.name], told))
    return made


def words_of(text: str) -> str:
    """
    Returns the words of a result in the order in which they stand; all of it if it is no envelope.
    """
    try:
        said = json.loads(text)
    except ValueError:
        return text
    if not isinstance(said, dict) or "status" not in said:
        return text
    return " ".join(_sentence(said[name]) for name in said if name in PROSE) or "(none)"


def request(told: Told, wording: str, seed: int, temperature: float) -> dict[str, Any]:
    """
    Returns what the model is asked, with a *wording* in place of the last result; without the library all results are plain.
    """
    messages = [dict(message) for message in told.body["messages"]]
    if wording == NOTHING:
        results = [message for message in messages if message["role"] == "tool"]
        for message, plain in zip(results, told.plain, strict=True):
            message["content"] = plain
    else:
        messages[-1]["content"] = wordings(told)[wording]
    return {
        "messages": messages,
        "tools": told.body["tools"],
        "temperature": temperature,
        "seed": seed,
        "max_tokens": 48,
    }


def _with(envelope: Mapping[str, Any], words: str | None) -> str:
    """
    Returns the envelope with *words* as the next step, where it has that, and with no others.
    """
    said = {**envelope, HINT: words}
    kept = {name: value for name, value in said.items() if name not in PROSE or (name == HINT and words is not None)}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)


def _sentence(said: Any) -> str:
    if isinstance(said, str):
        return said
    return " ".join(f"`{problem['field']}` {problem['message']}." for problem in said)


def _filled(text: str, told: Told) -> str:
    topic = told.topic
    first, second = topic.choices
    filled = text.replace("$choice", topic.choice).replace("$first", first).replace("$second", second)
    filled = filled.replace("$wrong", topic.wrong)
    return filled.replace("$key", topic.key).replace("$tool", topic.tool)
