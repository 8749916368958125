"""
The notebook from records to a served model: it runs, and what it showed when it last ran is kept in it.
"""

from pathlib import Path
from typing import Any, Final

import nbformat
import pytest

from nbclient import NotebookClient


ROOT: Final = Path(__file__).parents[3]
NOTEBOOK: Final = ROOT / "notebooks" / "retries.ipynb"
MOST_BYTES: Final = 400_000
FIGURES: Final = 4


def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def figures(notebook: Any) -> int:
    return sum("image/png" in output.get("data", {}) for cell in code(notebook) for output in cell.outputs)


def text(notebook: Any) -> str:
    return "".join(output.get("text", "") for cell in code(notebook) for output in cell.outputs)


def test_the_outputs_of_every_step_are_kept_and_small() -> None:
    notebook = stored()
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    assert figures(notebook) == FIGURES
    assert not any(output.output_type == "error" for cell in code(notebook) for output in cell.outputs)
    assert NOTEBOOK.stat().st_size < MOST_BYTES


@pytest.mark.system
@pytest.mark.system
def test_it_runs_from_records_to_a_served_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    notebook = stored()
    kept = text(notebook)
    for cell in code(notebook):
        cell.outputs, cell.execution_count = [], None
    (tmp_path / "work").mkdir()
    # A cell that raises makes this raise.
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path / "work"}}
    ).execute()
    said = text(notebook)
    assert figures(notebook) == FIGURES
    assert "is now the model" in said
    assert "the model that was written" in said
    # The same seed makes the same records.
    assert said.splitlines()[0] == kept.splitlines()[0]
    assert not list((tmp_path / "work").iterdir()), "it leaves nothing behind"
