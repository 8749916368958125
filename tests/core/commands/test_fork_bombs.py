"""
What would fill the machine with processes, and what only looks like it.
"""

from guardrails.core.commands.fork_bombs import fork_bomb
from guardrails.core.commands.grammar.syntax import parse
from tests.tables import table


@table(
    ("script", "found"),
    [
        (":(){ :|:& };:", "`:`"),
        ("a() { a & a; }; a", "`a`"),
        ("a() { b; }; b() { c | c; }; c() { a; }", "`b`"),
        ("a() ( a | a ); a", "`a`"),
        ("while :; do a & done", "endless"),
        ("for ((;;)); do a & done", "endless"),
        ("a() { ls | while read x; do a $x; done; }", None),
        ("a() { a; }", None),
        ("a() { b & c & wait; }", None),
        ("while true; do a & sleep 1; done", None),
        ("while read x; do a & done", None),
        ("for i in 1 2; do a & done", None),
    ],
)
def test_a_fork_bomb_is_told_from_honest_work(script: str, found: str | None) -> None:
    said = fork_bomb(parse(script).root)
    assert (said is None) if found is None else (said is not None and found in said)
