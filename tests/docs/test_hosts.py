"""
The page of the hosts: its table is what the drivers say, and each host that has tests has a page.
"""

import re

from pathlib import Path

import pytest

from tests.hosts.contract import Contract, behaviours
from tests.hosts.table import PAGE, cannot, hosts, page


def test_the_table_is_what_the_drivers_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run: python -m tests.hosts.table --write"


def test_a_host_is_listed_with_its_page_and_adapter() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in hosts():
        assert f"guardrails.integrations.{name}" in text
    for link in re.findall(r"\]\(([\w-]+\.md)\)", text):
        assert (PAGE.parent / link).is_file()


def test_every_behaviour_is_a_test_of_the_contract() -> None:
    assert len(behaviours()) >= 25
    assert all(callable(getattr(Contract, name)) for name in behaviours())


def test_reasons_are_read_without_the_host(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("""
WHY: str = "never (" + "loop.py:7)"
class Other:
    cannot = {"test_d": WHY}
""")
    (tmp_path / "test_x.py").write_text("""
import nowhere
from .beside import WHY, Other
LOOP = dict.fromkeys(("test_a", "test_b"), WHY)
class Driver:
    name = "x"
    cannot: object = {**LOOP, "test_c": f"no {WHY}"}
""")
    (tmp_path / "test_y.py").write_text("from .beside import Other")
    never = "never (loop.py:7)"
    assert cannot(tmp_path / "test_x.py") == {"test_a": never, "test_b": never, "test_c": f"no {never}"}
    assert cannot(tmp_path / "test_y.py") == {"test_d": never}


def test_reasons_that_only_a_run_would_tell_are_said_to_be_unreadable(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("class Driver:\n    cannot = reasons()")
    with pytest.raises(ValueError, match="without being run"):
        cannot(tmp_path / "test_x.py")
    (tmp_path / "test_y.py").write_text("class Driver: ...")
    with pytest.raises(ValueError, match="no driver"):
        cannot(tmp_path / "test_y.py")
