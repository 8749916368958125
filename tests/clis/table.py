"""
The table of behaviours and CLIs, from the tests and from what each client says that it cannot do.

    python -m tests.clis.table            print it
    python -m tests.clis.table --write    put it into docs/hooks/tested.md
"""

import ast
import sys
import tomllib

from pathlib import Path
from typing import Any, Final

from tests.clis.clients.base import Client
from tests.clis.clients.claude import Claude
from tests.clis.clients.codex import Codex
from tests.clis.clients.gemini import Gemini


HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parents[1] / "docs/hooks/tested.md"
BEGIN: Final = "<!-- python -m tests.clis.table --write -->\n"
END: Final = "<!-- end -->\n"
CLIENTS: Final[dict[str, type[Client]]] = {kind.name: kind for kind in (Claude, Codex, Gemini)}


def versions() -> dict[str, dict[str, Any]]:
    """
    What is installed of each client.
    """
    return tomllib.loads((HERE / "versions.toml").read_text(encoding="utf-8"))


def behaviours() -> dict[str, str]:
    """
    The tests that run a CLI, by their names, and each as a sentence.
    """
    found: dict[str, str] = {}
    for file in sorted(HERE.glob("test_*.py")):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.FunctionDef) and any(one.arg == "cli" for one in statement.args.args):
                found[statement.name] = statement.name.removeprefix("test_").replace("_", " ").capitalize()
    return found


def table() -> str:
    """
    A row a behaviour, a column a CLI; below it the reasons, each once.
    """
    reasons: dict[str, int] = {}
    for kind in CLIENTS.values():
        for why in kind.cannot.values():
            reasons.setdefault(why, len(reasons) + 1)
    known = versions()
    heads = [f"{known[name]['name']} {known[name]['shown']}" for name in CLIENTS]
    rows = [f"| behaviour | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for name, sentence in behaviours().items():
        whys = [kind.cannot.get(name) for kind in CLIENTS.values()]
        rows.append(f"| {sentence} | {' | '.join('yes' if why is None else f'no ({reasons[why]})' for why in whys)} |")
    notes = [f"{number}. {why}" for why, number in reasons.items()]
    return "\n".join([*rows, "", *notes, ""] if notes else [*rows, ""])


def page(text: str) -> str:
    """
    *text* of the page with the table of now.
    """
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())  # noqa: T201
