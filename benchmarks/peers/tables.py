"""
What the packages came to, as tables in Markdown.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.peers.works import ONE, OTHER, SAME


Told = Mapping[str, Any]
"""What `benchmarks.peers.one` says of a package, with its `name` and `version`."""
NONE: Final = "none"


def tables(told: Sequence[Told]) -> str:
    """
    Returns a table of repeats, of budgets and of one call's cost; then one of arguments.
    """
    repeats = [
        [
            _named(each),
            *_stories(each["stories"]),
            {"blind": NONE, "runs": "yes", "refused": "no"}.get(str(each["after a refusal"]), "fails"),
        ]
        for each in told
    ]
    for each in told:
        for way, found in each["also"].items():
            at = next(n for n, row in enumerate(repeats) if row[0] == _named(each))
            repeats.insert(at + 1, [f"{_named(each)}, {way}", *_stories(found), ""])
    budgets = [
        [_named(each), *(_count(each[work]) for work in BUDGETS), _sequence(each["sequential usd"], each["small usd"])]
        for each in told
    ]
    costs = [[_named(each), *_cost(each["cost"])] for each in told]
    odd = [[_named(each), *_odd(each["odd"]), *_forms(each["forms"])] for each in told]
    return "\n".join(
        [
            _table(
                (
                    "package",
                    "loops caught",
                    "of them refused",
                    "honest left alone",
                    "of the rest hinted at",
                    "others run",
                ),
                repeats,
            ),
            _table(
                ("package", *(f"{title}" for title in BUDGETS.values()), "$1.00 and $0.30, one by one: 10 and 3"),
                budgets,
            ),
            _table(("package", "a call", "early in a run", "late", "calls", "memory kept a call"), costs),
            _table(
                ("package", "odd arguments that ran", "that failed", "equal forms told as one", "others told apart"),
                odd,
            ),
        ]
    )


BUDGETS: Final[Mapping[str, str]] = {
    "parallel calls": "40 at once, cap of 10 calls",
    "parallel usd": "40 at once, cap of $1.00: 10",
    "failing calls": "20 that fail, cap of 10",
    "family": "2 sub-agents, $1.00 in all: 10",
}


def _named(each: Told) -> str:
    return f"{each['name']} {each['version']}"


def _stories(found: Any) -> list[str]:
    if not isinstance(found, Mapping):
        return ["fails" if found else NONE, "", "", ""]
    spared = found["honest"] - len(found["refused"])
    return [
        f"{found['caught']}/{found['loops']}",
        str(found["stopped"]),
        f"{spared}/{found['honest']}",
        str(len(found["hinted"])),
    ]


def _count(found: Any) -> str:
    return NONE if found is None else str(found) if isinstance(found, int) or found == ONE else "fails"


def _sequence(*found: Any) -> str:
    return NONE if found[0] is None else " and ".join(map(_count, found))


def _cost(found: Any) -> list[str]:
    if not isinstance(found, Mapping):
        return [NONE, "", "", "", ""]
    if "us" not in found:
        return [f"refuses such work after {found['ran']}", "", "", f"{found['calls']:,}", ""]
    without = "" if found["ran"] * 4 >= found["calls"] else ", its rule of repeats off"
    return [
        f"{found['us']:,.0f} us{without}",
        f"{found['first_us']:,.0f} us",
        f"{found['last_us']:,.0f} us",
        f"{found['calls']:,}",
        f"{found['bytes_a_call']:,.0f} B",
    ]


def _odd(found: Mapping[str, str]) -> list[str]:
    wrong = [f"{name}: {said}" for name, said in found.items() if said not in ("ran", "refused")]
    return [f"{sum(said == 'ran' for said in found.values())}/{len(found)}", "; ".join(wrong) or NONE]


def _forms(found: Any) -> list[str]:
    if not isinstance(found, Mapping):
        return [NONE, NONE]
    cells = []
    for pairs in (SAME, OTHER):
        wrong = [name for name in pairs if found[name] != "right"]
        cells.append(f"{len(pairs) - len(wrong)}/{len(pairs)}" + (f", not {', '.join(wrong)}" if wrong else ""))
    return cells


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
