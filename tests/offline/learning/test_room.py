"""
The size of a model file, whatever the log.
"""

import orjson
import pytest

from guardrails.core.retries.model_format import MAX_BYTES, parse
from guardrails.core.values.types import ERROR_TYPES
from guardrails.offline.learning.candidate import candidate, tallies_of
from guardrails.offline.learning.design import columns_of
from guardrails.offline.learning.fit import RICH, TERMS, fit
from guardrails.offline.learning.prior import prior_cells
from guardrails.offline.learning.room import told_pairs, with_room
from guardrails.offline.learning.rows.cells import Cell, merged
from tests.offline.learning.conftest import SPEC, world
from tests.tables import table


ALL = (*TERMS, *RICH)


def tools(count: int, name: str = "tool {}") -> list[Cell]:
    """
    The retries of as many tools, the first with the most.
    """
    few = world(range(100, 101), retries=60)
    return merged(
        cell._replace(tool=name.format(tool), n=cell.n * (count - tool), s=cell.s * (count - tool))
        for tool in range(count)
        for cell in few[tool % 7 :: 7]
    )


@table("name", ["tool {}", '\n"{0}"\\' * 20, "\u65e5\u672c{}"])
def test_weights_of_tools_take_no_more_than_their_room(name: str) -> None:
    room = 60_000
    columns = columns_of(SPEC, tools(40, name), beliefs=prior_cells(SPEC))
    fitted = fit(with_room(columns, ALL, room), ALL)
    written = [orjson.dumps(dict(term.weights)) for term in fitted.terms if "tool" in term.on]
    assert 0 < sum(map(len, written)) <= room
    known = {key for term in fitted.terms if term.on == ("tool",) for key in term.weights}
    # Beside the most used ones, a smaller one may find room that a larger one does not.
    assert {name.format(tool) for tool in range(len(known) * 2 // 3)} <= known
    assert len(known) < 40


def test_a_log_of_few_tools_keeps_them_all() -> None:
    columns = columns_of(SPEC, tools(40))
    assert with_room(columns, ALL) is columns


def test_a_tool_of_an_endless_name_keeps_no_other_out() -> None:
    endless = [cell._replace(tool="x" * 100_000, n=cell.n * 1e6, s=cell.s * 1e6) for cell in world(retries=60)]
    made = with_room(columns_of(SPEC, [*endless, *tools(3)]), ALL, 60_000)
    assert {made.names["tool"][place] for place in made.levels["tool"] if place >= 0} == {"tool 0", "tool 1", "tool 2"}


def test_what_is_told_of_pairs_takes_no_more_than_its_room() -> None:
    room = 20_000
    tallies = tallies_of(SPEC, tools(60))
    told = told_pairs(tallies, room)
    assert 0 < len(told) < len(tallies)
    least = min(tally.plain.n for tally in told.values())
    assert all(tally.plain.n <= least for key, tally in tallies.items() if key not in told)
    assert told_pairs(tallies) == tallies


@pytest.mark.system
@table("length", [8, 200])
def test_two_thousand_tools_with_every_kind_of_failure_make_a_file_that_can_be_read(length: int) -> None:
    few = world(range(100, 101), retries=4)
    many = [
        cell._replace(tool=f"tool {number}".ljust(length, "x"), error_type=error)
        for number in range(2_000)
        for error in ERROR_TYPES[number % 3 :: 3]
        for cell in few[number % 5 :: 5]
    ]
    made = candidate(SPEC, many, ALL)
    assert len(made.text) < MAX_BYTES
    assert parse(made.text).name == made.model.name
    assert made.model.body["profiles"]
