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
FIGURES: Final = 4


def stored() -> tuple[Any, list[Any]]:
    """
    The notebook and its cells of code.
    """
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    return notebook, [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(code: list[Any]) -> tuple[int, str]:
    """
    How many figures the cells drew, and the text that they printed.
    """
    outputs = [output for cell in code for output in cell.outputs]
    figures = sum("image/png" in output.get("data", {}) for output in outputs)
    return figures, "".join(output.get("text", "") for output in outputs)


def test_the_outputs_of_every_step_are_kept_and_small() -> None:
    notebook, code = stored()
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
    assert shown(code)[0] == FIGURES
    assert NOTEBOOK.stat().st_size < 400_000
    lines = [line for cell in code for line in cell.source.splitlines() if "guardrails" in line and "import" in line]
    assert lines == ["from guardrails import Failed, Policy"], "it uses public names alone"


def test_it_runs_from_records_to_a_served_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"PYTHONPATH": ROOT, "IPYTHONDIR": tmp_path / "i", "MPLCONFIGDIR": tmp_path / "m", "RECORDS": ""}
    for name, value in own.items():
        monkeypatch.setenv(name, str(value))
    notebook, code = stored()
    (tmp_path / "work").mkdir()
    where = {"metadata": {"path": tmp_path / "work"}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    assert not list((tmp_path / "work").iterdir()), "it leaves nothing behind"
    figures, text = shown(code)
    # The same seed makes the same records.
    assert (figures, text.splitlines()[0]) == (FIGURES, shown(stored()[1])[1].splitlines()[0])
