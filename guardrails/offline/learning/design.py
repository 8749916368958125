"""
Cells as columns, and the one-hot matrix of a model's terms over them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.retries.scoring import ERROR, EXPLORE, POLICY, SEPARATOR, SOURCE, TOOL, Term
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import needs
from guardrails.offline.learning.labels import NO_ACTION
from guardrails.offline.learning.prior import Believed
from guardrails.offline.learning.rows.cells import Cell


if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]

_NAMES: Final = (TOOL, ERROR, SOURCE)


@dataclass(frozen=True)
class Columns:
    """
    Labelled cells, one entry each, in the order of their keys.
    """

    spec: FeatureSpec
    names: Mapping[str, tuple[str, ...]]
    """The values of `tool`, `error` and `source`, sorted."""
    levels: "Mapping[str, Numbers]"
    """Of each factor; of a name its place in *names*, -1: none, which weighs nothing."""
    n: "Numbers"
    s: "Numbers"
    fold: "Numbers"

    def __len__(self) -> int:
        return len(self.n)

    def radix(self, factor: str) -> int:
        """
        Returns how many levels *factor* has here.
        """
        return len(self.names[factor]) if factor in self.names else self.spec.by_name[factor].radix

    def joined(self, term: Sequence[str]) -> "Numbers":
        """
        Returns the levels of *term* as one integer for each cell; -1 if one of them is none.
        """
        from guardrails.offline.learning.numeric import np

        code = np.zeros(len(self), dtype=np.int64)
        none = np.zeros(len(self), dtype=bool)
        for factor in term:
            levels = self.levels[factor]
            code = code * self.radix(factor) + levels
            none |= levels < 0
        code[none] = -1
        return code

    def key(self, term: Sequence[str], code: int) -> str:
        """
        Returns the key of a term's weight for the levels that `joined` packed.
        """
        parts: list[str] = []
        for factor in reversed(term):
            code, level = divmod(code, self.radix(factor))
            parts.append(self.names[factor][level] if factor in self.names else str(level))
        return SEPARATOR.join(reversed(parts))


def columns_of(
    spec: FeatureSpec,
    cells: Iterable[Cell],
    *,
    tools: frozenset[str] | None = None,
    beliefs: Iterable[Believed] = (),
    source: str | None = None,
) -> Columns:
    """
    Returns the labelled ones of *cells* as columns, and *beliefs* as cells of no tool and no source.

    Tools that are not among *tools* have no weights of their own; *source* overrides who caused the retries. Retries to explore
    and those that a policy advised have none of their source: what is scored is what all others are deviations from.
    """
    from guardrails.offline.learning.numeric import np

    rows: list[tuple[str | None, str, str | None, int, int, float, float, int]] = [
        (None, one.error, None, one.context, one.action, one.n, one.s, -1) for one in beliefs
    ]
    rows += [
        (
            cell.tool if tools is None or cell.tool in tools else None,
            cell.error_type,
            _source(cell.source if source is None else source),
            cell.context,
            cell.action,
            cell.n,
            cell.s,
            cell.fold,
        )
        for cell in sorted(cells)
        if cell.action != NO_ACTION and cell.n > 0
    ]
    names: dict[str, tuple[str, ...]] = {}
    levels: dict[str, Numbers] = {}
    for at, name in enumerate(_NAMES):
        names[name] = tuple(sorted({str(row[at]) for row in rows if row[at] is not None}))
        place: dict[Any, int] = {value: index for index, value in enumerate(names[name])}
        levels[name] = np.array([place.get(row[at], -1) for row in rows], dtype=np.int64)
    for kind, at in ((spec.context, 3), (spec.action, 4)):
        codes = np.array([row[at] for row in rows], dtype=np.int64)
        for factor in kind:
            levels[factor.name] = codes // factor.stride % factor.radix
    n, s, fold = (np.array([row[at] for row in rows], dtype=kind) for at, kind in ((5, float), (6, float), (7, int)))
    return Columns(spec, names, levels, n, s, fold)


def _source(name: str) -> str | None:
    # A policy knows of a failure what the model knows; only who sees more chooses better or worse than that.
    return None if name in (EXPLORE, POLICY) else name


def collapsed(columns: Columns, factors: Iterable[str]) -> Columns:
    """
    Returns *columns* that know *factors* only: cells that differ in others are one, which changes no fit and makes it
    faster.
    """
    from guardrails.offline.learning.numeric import np

    kept = sorted(factors)
    code = np.zeros(len(columns), dtype=np.int64)
    for factor in kept:
        code = code * (columns.radix(factor) + 1) + columns.levels[factor] + 1
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    n, s = (np.bincount(place, weights=weights, minlength=len(first)) for weights in (columns.n, columns.s))
    levels = {factor: columns.levels[factor][first] for factor in kept}
    return Columns(columns.spec, columns.names, levels, n, s, columns.fold[first])


def design(columns: Columns, terms: Sequence[Sequence[str]]) -> tuple[list[tuple[int, str]], Any]:
    """
    Returns the columns of *terms*, (place of the term, key of the weight), and the one-hot matrix (scipy CSR) over the
    cells.
    """
    from guardrails.offline.learning.numeric import np

    with needs("train", "training"):
        from scipy.sparse import csr_matrix

    found: list[tuple[int, str]] = []
    rows: list[Numbers] = []
    places: list[Numbers] = []
    for at, term in enumerate(terms):
        joined = columns.joined(term)
        there = np.flatnonzero(joined >= 0)
        codes, place = np.unique(joined[there], return_inverse=True)
        rows.append(there)
        places.append(place + len(found))
        found += [(at, columns.key(term, int(code))) for code in codes]
    row, place = np.concatenate(rows), np.concatenate(places)
    shape = (len(columns), len(found))
    matrix = csr_matrix((np.ones(len(row)), (row, place)), shape=shape)
    matrix.sort_indices()
    return found, matrix


def logits(columns: Columns, intercept: float, terms: Iterable[Term]) -> "Numbers":
    """
    Returns the log odds of each cell by the weights of *terms*; the same as `Scorer` finds one by one.
    """
    from guardrails.offline.learning.numeric import np

    total = np.full(len(columns), intercept)
    for on, weights in terms:
        codes, place = np.unique(columns.joined(on), return_inverse=True)
        known = [0.0 if code < 0 else weights.get(columns.key(on, int(code)), 0.0) for code in codes]
        total += np.array(known)[place]
    return total
