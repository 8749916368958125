"""
A Retry-After that an earlier answer of the tool has named still holds when a later answer names none.
"""

from guardrails.core.retries.context import Settled, due_of
from guardrails.offline.learning.labels import SessionFeatures, time_left
from tests.core.retries.pinned import SPEC
from tests.tables import table


@table(
    ("due", "ended", "own", "left"),
    [
        (None, 1_000, None, None),
        (None, 1_000, 500, 500),
        (None, None, 500, 500),
        (5_000, 1_000, None, 4_000),
        (5_000, 1_000, 500, 4_000),
        (5_000, 1_000, 9_000, 9_000),
        (5_000, 5_000, None, None),
        (5_000, 6_000, None, None),
        (5_000, 6_000, 0, 0),
        (5_000, None, None, None),
    ],
)
def test_the_latest_time_that_was_named_counts(
    due: int | None, ended: int | None, own: int | None, left: int | None
) -> None:
    assert time_left(due, ended, own) == left
    if left is not None and ended is not None:
        assert due_of(due, ended, own) == ended + left


def test_it_is_the_tools_own_and_ends_when_it_is_over() -> None:
    features = SessionFeatures(SPEC)

    def left(tool: str, ended: int, header: int | None = None) -> int | None:
        made = features.settle(Settled(tool, 1, "rate_limit", ended), 0, header)
        assert made is not None
        return made.retry_after_ms

    assert left("a", 0, 10_000) == 10_000
    assert left("b", 1_000) is None
    assert left("a", 4_000) == 6_000
    assert left("a", 10_000) is None


def test_one_outage_that_shows_in_several_ways_is_one_run_of_failures() -> None:
    features = SessionFeatures(SPEC)
    levels = []
    for at, error in enumerate(("timeout", "unavailable", "rate_limit", "server_error", "connection")):
        made = features.settle(Settled("a", at, error, 1_000 * at), 0, None)
        assert made is not None
        levels.append(SPEC.decode_context(made.code)["err_run"])
    assert levels == [0, 1, 0, 0, 1]
