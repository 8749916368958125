"""
What a report can say of a tool, each with calls of which it is true and near neighbours of which it is not.
"""

from typing import Final, NamedTuple

from tests.offline.report.planted import Sessions


class Case(NamedTuple):
    """
    A statement, as a piece of the text, and the calls.
    """

    says: str
    true: Sessions
    false: Sessions


def one(*steps: str) -> Sessions:
    return [list(steps)]


def many(n: int, *steps: str) -> Sessions:
    return [list(steps) for _ in range(n)]


SAME: Final = "say in the result that it is complete and the same call brings the same"
WAITS: Final = "it waits for something: have it answer when there is news or say when to ask again. Not your tool? Declare `repeats: allow`"
AGAIN: Final = "say in it that the same call fails again, and what to do instead"
SAYS_ALL: Final = '{"items": [1], "has_more": false}'
CUT: Final = '{"items": [1], "is_complete": false}'
ON: Final = '{"items": [1], "is_complete": false, "next_cursor": "c2"}'

TEXT: Final = [
    # What was read.
    Case("1 recorded call of 1 session, 1 tool", one("t=1"), one("t=1", "t=2")),
    Case("2 recorded calls of 2 sessions, 2 tools", [["t=1"], ["u=1"]], one("t=1", "u=1")),
    Case("2 recorded calls of 1 session, 1 tool", one("t=1", "t=2"), [["t=1"], ["t=2"]]),
    Case("1 of 1 call has no result", one("t?"), one("t?", "t x?")),
    Case("1 of 2 calls has no result", one("t=1", "t x?"), one("t=1", "t x=2")),
    # What the reader can do who cannot change the tool.
    Case("Not your tool? Declare its `parameters`", one("t!validation"), one("t!timeout")),
    Case("Not your tool? Declare its `timeout`", one("t!timeout"), one("t!validation")),
    Case("Not your tool? Declare where it says that there is more", one(*[f"t={CUT}"] * 2), one(*[f"t={ON}"] * 2)),
    # What was wasted.
    Case("1. t: 1 of 2 calls wasted - 1 repeated", one("t=1", "t=1"), one("t=1", "t=2")),
    Case("Redesign first", one("t!timeout"), one("t=1")),
    Case("1. t: 2 of 6 calls wasted", one(*["t=1"] * 3, "t a=1", "t b=1", "t c=1"), one("t=1", "t=1", "t a=1")),
    Case("1. u: 2 of 3 calls wasted", one("u=1", "u=1", "u=1", "t=1", "t=1"), one("u=1", "u=2", "u=3", "t=1", "t=1")),
    Case("1 repeated a result", one("t=1", "t=1"), one("t=1", "t x=1")),
    Case("1 repeated a result", one("t=1", "u=1", "u=1", "t=1"), one("t=1", "u=1", "u=2", "t=1")),
    Case("1 repeated a result", one("t=1", "read_file=1", "t=1"), one("t=1", "write_file=1", "t=1")),
    Case(
        "1 repeated a result",
        one("t=1", *(f"read_it {n}=1" for n in range(19)), "t=1"),
        one("t=1", *(f"read_it {n}=1" for n in range(20)), "t=1"),
    ),
    Case("1 repeated a result", one("t=1", "t=1"), [["t=1"], ["t=1"]]),
    Case("1 repeated a result", one("t=1", "t=1"), one("t=1", "t?")),
    Case("1 repeated an error", one("t!permission", "t!permission"), one("t!permission", "t!not_found")),
    Case("1 repeated an error", one("t!permission", "t!permission"), one("t!permission", "t x!permission")),
    # Why.
    *(
        Case(f"1 failed with {kind}: ", one(f"t!{kind}"), one(f"t!{near}"))
        for kind, near in (
            ("timeout", "rate_limit"),
            ("rate_limit", "server_error"),
            ("not_found", "validation"),
            ("validation", "not_found"),
            ("permission", "auth"),
            ("auth", "permission"),
            ("unavailable", "timeout"),
            ("server_error", "unavailable"),
            ("connection", "server_error"),
            ("conflict", "too_large"),
            ("too_large", "conflict"),
            ("other", "conflict"),
        )
    ),
    Case("2 failed with timeout", one("t a!timeout", "t b!timeout"), one("t a!timeout", "t b!rate_limit")),
    Case(
        "1 failed with timeout",
        one("t a!timeout", *["t b!other"] * 9),
        one("t a!timeout", *(f"t {n}!other" for n in range(10))),
    ),
    Case(AGAIN, one("t!permission", "t!permission"), one(*["t!timeout", "t!timeout", "t=1"] * 2)),
    Case(
        "say in it when to call again; 2 of 4 same calls after a failure worked",
        one(*["t!timeout", "t!timeout", "t=1"] * 2),
        one(*["t!timeout"] * 5),
    ),
    Case(SAME, one("t=1", "t=1"), one(f"t={SAYS_ALL}", f"t={SAYS_ALL}")),
    Case(f"{SAME}; 2 of 2 results do not", one("t=1", "t=1"), one("t=1", "t=1", "t x=1")),
    Case(f"{SAME}; 1 of 3 results does not", one("t=x", *[f"t y={SAYS_ALL}"] * 2), one(*[f"t y={SAYS_ALL}"] * 3)),
    Case(
        "its results say already whether they are complete: let the policy refuse the repeat",
        one(f"t={SAYS_ALL}", f"t={SAYS_ALL}"),
        one("t=1", "t=1"),
    ),
    Case(
        "say in incomplete results how to go on; 2 of 2 results do not",
        one(f"t={CUT}", f"t={CUT}"),
        one(f"t={ON}", f"t={ON}"),
    ),
    Case(
        "say in incomplete results how to go on",
        one(*['t={"a": 1, "truncated": true}'] * 2),
        one(*['t={"a": 1, "truncated": false}'] * 2),
    ),
    Case(
        "say in the result what changes it, or when: 3 of 5 repeats brought something new, or came after work",
        one("t=1", "t=2", "t=3", "t=4", "t=4", "t=4"),
        one(*["t=1"] * 6),
    ),
    Case(
        "3 of 5 repeats brought something new, or came after work",
        one("t=1", *["edit_file=1", "t=1"] * 3, "t=1", "t=1"),
        one("t=1", *["read_file=1", "t=1"] * 3, "t=1", "t=1"),
    ),
    Case(WAITS, many(20, "t=wait", "t=wait", "t=done"), many(20, "t=wait", "t=wait", "t=wait")),
    Case(WAITS, many(20, "t=wait", "t=wait", "t=done"), many(20, "t=wait", "t=wait", "write_x=1", "t=done")),
    Case(WAITS, many(20, "t=wait", "t=wait", "t=done"), one(*["t=wait", "t=wait", "t=done"] * 20)),
    Case(
        "2 of 5 calls with wrong arguments were corrected by the next one",
        one(*(s for n in range(5) for s in (f"t a{n}!validation", f"t b{n}={n}" if n < 2 else "u=1"))),
        one(*(s for n in range(5) for s in (f"t a{n}!validation", f"t b{n}={n}"))),
    ),
    Case(
        "1 of 5 calls with wrong arguments was corrected by the next one",
        one(*(f"t {n}!validation" for n in range(5)), "t b=1"),
        one(*(f"t {n}!validation" for n in range(5)), "t 4=1"),
    ),
]
"""What a report prints."""
