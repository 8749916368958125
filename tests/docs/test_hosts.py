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
    for link in re.findall(r"\]\((\w+\.md)\)", text):
        assert (PAGE.parent / link).is_file()


def test_every_behaviour_is_a_test_of_the_contract() -> None:
    assert len(behaviours()) >= 25
    assert all(callable(getattr(Contract, name)) for name in behaviours())


def test_reasons_are_read_without_the_host() -> None:
    source = """
import nowhere
WHY = "never (" + "loop.py:7)"
LOOP = dict.fromkeys(("test_a", "test_b"), WHY)
class Driver:
    name = "x"
    cannot: object = {**LOOP, "test_c": f"no {WHY}"}
"""
    assert cannot(source) == {
        "test_a": "never (loop.py:7)",
        "test_b": "never (loop.py:7)",
        "test_c": "no never (loop.py:7)",
    }


def test_reasons_that_only_a_run_would_tell_are_said_to_be_unreadable() -> None:
    with pytest.raises(ValueError, match="without being run"):
        cannot("class Driver:\n    cannot = reasons()")
    assert Path(PAGE).name == "README.md"
