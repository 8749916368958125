"""
The picture of the README: one stuck agent, without guards and with them.

    python -m benchmarks.stuck_agent [--write]

It runs what `guardrails demo` runs: the real openai client against a scripted model. `--write` draws the picture into docs.
"""

import sys
import textwrap

from html import escape
from pathlib import Path
from typing import Final

from guardrails import Policy
from guardrails.agent.demo import Comparison, Figures, compare


PICTURE: Final = Path(__file__).resolve().parents[1] / "docs/stuck-agent.svg"
WIDTH, HEIGHT, LEFT, STEP, SIZE, IN_A_ROW = 740, 270, 16, 28, 20, 25
STYLE: Final = (
    "text{font:14px sans-serif;fill:#1f2328}.dim{fill:#59636e}.back{fill:#ffffff}.told{font-weight:bold}"
    ".bare{fill:#d55e00}.ran{fill:#0072b2}.refused{fill:none;stroke:#59636e;stroke-dasharray:3 2}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.back{fill:#0d1117}"
    ".bare{fill:#f0883e}.ran{fill:#56b4e9}.refused{stroke:#9198a1}}"
)
"""The colours of Okabe and Ito, lighter if the page is dark; the words say it too."""


def svg(compared: Comparison) -> str:
    """
    Returns a square for each call of both runs, and what each run came to.
    """
    bare, ours, answer = compared.unguarded, compared.guarded, compared.guarded.answer
    refused = len(compared.read) - ours.executions
    below = 74 + STEP * -(-bare.executions // IN_A_ROW)
    title = "One stuck agent, without guards and with them"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
        _text(24, f"Without guards: the same search runs {bare.executions} times", "told"),
        *_squares(["bare"] * bare.executions, 38),
        _text(below - 22, f"{_cost(bare)}: no answer, and only the demo ended it", "dim"),
        _text(below + 22, f"With guards: it runs {_times(ours.executions)}, then {refused} refusals", "told"),
        *_squares(["ran"] * ours.executions + ["refused"] * refused, below + 36),
        _text(below + 80, f"{_cost(ours)}: the agent answers its user", "dim"),
        *(_text(below + 104 + 20 * n, said, "said") for n, said in enumerate(textwrap.wrap(f"“{answer}”", 90))),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _squares(kinds: list[str], top: int) -> list[str]:
    return [
        f'<rect class="{kind}" x="{LEFT + STEP * (n % IN_A_ROW)}" y="{top + STEP * (n // IN_A_ROW)}" '
        f'width="{SIZE}" height="{SIZE}" rx="4"/>'
        for n, kind in enumerate(kinds)
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"


def _cost(run: Figures) -> str:
    cost = f", ${run.cost_usd:.2f}" if run.cost_usd >= 0.05 else f", ${run.cost_usd:.3f}"
    return f"{run.requests} model requests, {run.tokens:,} tokens{cost}"


def _text(y: int, said: str, kind: str) -> str:
    return f'<text class="{kind}" x="{LEFT}" y="{y}">{escape(said)}</text>'


def main() -> None:
    """
    Print the picture, or write it.
    """
    drawn = svg(compare(Policy.load("default")))
    if sys.argv[1:] == ["--write"]:
        PICTURE.write_text(drawn, encoding="utf-8")
    else:
        print(drawn, end="")


if __name__ == "__main__":
    main()
