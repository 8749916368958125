"""
What changes of the model would do to worlds that were left out, and to recorded calls.

    python -m benchmarks.learning.worlds.changes [DATA]      # DATA: a folder of recorded calls, see benchmarks.retries.real

A change is one worth making if it raises mean skill and mean value of all three ways of learning, lowers no world by more than noise,
and does not raise the log loss of recorded calls.
"""

import argparse
import sys

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from threadpoolctl import threadpool_limits

from benchmarks.retries.models import Maker, regression
from benchmarks.retries.real import DATA, cells_of, judged
from guardrails.offline.learning.fit import RICH, TERMS

from .judge import OTHERS, OWN, QUICK, WITH_FEW, Data, Figures, left_out, mean


ALL: Final = (*TERMS, *RICH)
MAIN: Final = (("delay",), ("reach",), ("attempt",), ("err_run",), ("fail_share",))
OF_TOOLS: Final = (("tool", "reach"), ("tool", "attempt"), ("tool", "fail_share"), ("tool", "err_run"))
AS_IT_IS: Final = "as it is"
CHANGES: Final[Mapping[str, Maker]] = {
    AS_IT_IS: regression(ALL),
    "main effects of all factors": regression((*ALL, *MAIN)),
    "terms of tools over all errors": regression((*ALL, *OF_TOOLS)),
    "fine terms shrunk more": regression(ALL, spreads=(1.0, 0.7, 0.35, 0.25)),
    "fine terms shrunk less": regression(ALL, spreads=(1.0, 1.0, 0.7, 0.5)),
    "all terms shrunk less": regression(ALL, spreads=(1.5, 1.5, 0.75, 0.5)),
    "beliefs worth a quarter": regression(ALL, beliefs=10),
    "beliefs worth four times": regression(ALL, beliefs=160),
}
JUDGED: Final = (OTHERS, WITH_FEW, OWN)


def lowest(
    found: Mapping[str, Mapping[str, Figures]], base: Mapping[str, Mapping[str, Figures]], model: str
) -> Figures:
    """
    The largest loss of each figure in any world.
    """
    columns = zip(
        *((now - was for now, was in zip(found[name][model], base[name][model], strict=True)) for name in found),
        strict=True,
    )
    return Figures(*(min(column) for column in columns))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=DATA, metavar="DATA")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    sources = cells_of(asked.data) if asked.data.is_dir() else {}
    with threadpool_limits(limits=1):
        data = Data(QUICK, asked.seed)
        base = left_out(data, fit=CHANGES[AS_IT_IS], trees=False)
        print(f"{'':34}" + "".join(f"{model:>36}" for model in JUDGED) + f"{'recorded calls':>16}")
        print(f"{'':34}" + f"{'skill':>8}{'lowest':>9}{'value':>10}{'lowest':>9}" * len(JUDGED) + f"{'log loss':>16}")
        for name, fit in CHANGES.items():
            found = base if name == AS_IT_IS else left_out(data, fit=fit, trees=False)
            print(f"{name:34}", end="")
            for model in JUDGED:
                now, low = mean(found, model), lowest(found, base, model)
                print(f"{now.skill:8.3f}{low.skill:+9.3f}{now.value:10.1f}{low.value:+9.1f}", end="")
            print(f"{judged(data.spec, sources, fit).log_loss:16.4f}" if sources else "", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
