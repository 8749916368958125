"""
Model files are loaded, and loaded again when they change, never in part.
"""

import logging

from pathlib import Path

import pytest

from guardrails.core.retries.model import MAX_BYTES
from guardrails.core.retries.serving import RETRIES
from guardrails.policy.models import CHECK_MS, ModelFiles, cold_model, read_model
from guardrails.stores.places import write_whole
from tests.core.retries.conftest import text


def names(files: ModelFiles) -> list[str]:
    return [model.name for model in files.loaded.values()]


def test_until_there_is_a_file_the_shipped_model_is_asked_and_a_change_is_looked_for_every_few_seconds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "retry.json"
    files = ModelFiles({str(path): RETRIES})
    assert files.loaded[str(path)] is cold_model()
    path.write_bytes(text())
    files.refresh(1_000_000)
    before = names(files)
    assert before == [read_model(path).name]
    write_whole(path, text(training={"days": [1, 2]}))
    files.refresh(1_000_000 + CHECK_MS - 1)
    assert names(files) == before
    files.refresh(1_000_000 + CHECK_MS)
    assert names(files) == [read_model(path).name] != before


@pytest.mark.parametrize(
    "bad", [b"", b"{}", text()[:-10], text().replace(b"0.25", b"0.26"), b"\x80\x04K\x01.", b"x" * (MAX_BYTES + 10)]
)
def test_a_file_that_is_no_good_leaves_what_was_loaded_and_is_told_of_once(
    bad: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "retry.json"
    path.write_bytes(text())
    files = ModelFiles({str(path): RETRIES})
    before = names(files)
    path.write_bytes(bad)
    with caplog.at_level(logging.ERROR, "guardrails"):
        for second in range(1, 60, 6):
            files.refresh(second * 1_000 + CHECK_MS)
    path.unlink()
    files.refresh(10**8)
    assert names(files) == before
    assert caplog.text.count("what was loaded before stays") == 1
