"""
Sessions made up at random, as rows, and what the two computers of features make of them, failure by failure.
"""

import random

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.types import INVALID
from guardrails.offline.learning.labels import CallRow, labelled
from guardrails.offline.learning.rows.sql import COLUMNS, extraction


KINDS = {"BIGINT": pa.int64(), "INTEGER": pa.int32(), "STRING": pa.string(), "BOOLEAN": pa.bool_()}
ERRORS = ("timeout", "rate_limit", "server_error", "not_found", "validation")
Found = dict[tuple[int, str, str], tuple[int, int, str, float, float, float, float]]


def session(rng: random.Random, calls: int) -> list[CallRow]:
    """
    Calls of few tools and signatures: runs, repeats, refusals, calls that overlap, times that are not known.
    """
    clock = began = 1_767_225_600_000 + rng.randrange(10**9)
    rows = []
    for _ in range(calls):
        tool = rng.choice(("search", "book", 'a "quoted"\nname; --'))
        chance = rng.random()
        error = None if chance < 0.4 else INVALID if chance < 0.45 else rng.choice(ERRORS)
        clock += rng.choice((0, 10, 900, 3_000, 9_000, 70_000, 400_000))
        timed = rng.random() > 0.02
        rows.append(
            CallRow(
                tool,
                None if rng.random() < 0.03 else hash((tool, rng.randrange(4))) % 2**63,
                error,
                clock - rng.choice((0, 0, 0, 5_000)) if timed else None,
                clock + rng.choice((0, 5, 2_000)) if timed else None,
                rng.choice((clock - began, None)),
                rng.choice((None, None, 500, 2_000, 40_000)) if error else None,
                rng.random() < 0.5,
                rng.choice((None, "agent", "explore")),
            )
        )
    return rows


def table(sessions: Iterable[Sequence[CallRow]]) -> pa.Table:
    """
    The view `calls` of *sessions*; each call has a day of its own, so that each failure has a cell of its own.
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for number, rows in enumerate(sessions):
        for n, row in enumerate(rows):
            told = {"session": number, "n": n, "day": len(columns["n"]), "fold": 0, "ctx_logged": None}
            for name, values in columns.items():
                values.append(told[name] if name in told else getattr(row, name))
    return pa.table({name: pa.array(values, KINDS[COLUMNS[name]]) for name, values in columns.items()})


def by_sql(spec: FeatureSpec, calls: pa.Table) -> Found:
    """
    What the offline extraction says of each failure.
    """
    with duckdb.connect() as con:
        con.register("calls", calls)
        rows = con.sql(extraction(spec)).fetchall()
    return {
        (day, tool, error): (*rest, n, s, fixes, fixed)
        for day, _, tool, error, *rest, n, s, _, fixes, fixed, _, _ in rows
    }


def by_python(spec: FeatureSpec, sessions: Iterable[Sequence[CallRow]]) -> Found:
    """
    What the online computer and the labels say of each failure.
    """
    found: Found = {}
    first = 0
    for rows in sessions:
        for at, tool, error, *rest in labelled(spec, rows):
            found[first + at, tool, error] = tuple(rest)  # type: ignore[assignment]
        first += len(rows)
    return found
