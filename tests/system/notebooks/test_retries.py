"""
The notebook from records to a served model: it runs, and what it showed when it last ran is kept in it.
"""

import itertools

from pathlib import Path
from typing import Any, Final

import nbformat
import pytest

from nbclient import NotebookClient

from benchmarks.retries import recorded
from benchmarks.retries.sessions import World, stream
from benchmarks.retries.trial import TRAINING_DAYS


ROOT: Final = Path(__file__).parents[3]
NOTEBOOK: Final = ROOT / "notebooks" / "retries.ipynb"
MOST_BYTES: Final = 400_000
FIGURES: Final = 4


def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def figures_of(cell: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


def figures(notebook: Any) -> int:
    return sum(map(figures_of, code(notebook)))


def text(notebook: Any) -> str:
    return "".join(output.get("text", "") for cell in code(notebook) for output in cell.outputs)


def test_the_outputs_of_every_step_are_kept_and_small() -> None:
    notebook = stored()
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    assert figures(notebook) == FIGURES
    assert not any(output.output_type == "error" for cell in code(notebook) for output in cell.outputs)
    assert NOTEBOOK.stat().st_size < MOST_BYTES


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, records: str = "") -> Any:
    """
    The notebook, run anew in *folder*; a cell that raises makes this raise.
    """
    for name, value in (("PYTHONPATH", ROOT), ("IPYTHONDIR", folder / "i"), ("MPLCONFIGDIR", folder / "m")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("RECORDS", records)
    notebook = stored()
    for cell in code(notebook):
        cell.outputs, cell.execution_count = [], None
    (folder / "work").mkdir()
    where = {"metadata": {"path": folder / "work"}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    assert not list((folder / "work").iterdir()), "it leaves nothing behind"
    return notebook


def test_it_uses_public_names_alone() -> None:
    lines = "\n".join(cell.source for cell in code(stored())).splitlines()
    assert [line for line in lines if "guardrails" in line and "import" in line] == [
        "from guardrails import Failed, Policy"
    ]


def test_each_figure_is_explained_before_it() -> None:
    cells = stored().cells
    drawn = [at for at, cell in enumerate(cells) if cell.cell_type == "code" and figures_of(cell)]
    assert all(cells[at - 1].cell_type == "markdown" and len(cells[at - 1].source) > 200 for at in drawn)


@pytest.mark.system
def test_it_runs_from_records_to_a_served_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = run(tmp_path, monkeypatch)
    assert figures(notebook) == FIGURES
    # The same seed makes the same records.
    assert text(notebook).splitlines()[0] == text(stored()).splitlines()[0]


@pytest.mark.system
def test_it_reads_records_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = itertools.islice(stream(World(seed=1), TRAINING_DAYS), 640)
    policy, file = recorded.recording(str(tmp_path / "none.json")), tmp_path / "records.jsonl"
    calls = len(list(recorded.play(list(sessions), policy, file)))
    notebook = run(tmp_path, monkeypatch, str(file))
    assert figures(notebook) == FIGURES
    assert text(notebook).startswith(f"{calls:,} calls in 640 sessions")
