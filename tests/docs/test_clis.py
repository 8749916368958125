"""
The page of what is tested with the real CLIs: its table is what the tests and the clients say.
"""

from tests.clis.table import CLIENTS, PAGE, behaviours, page, versions


def test_the_table_is_that_of_the_tests() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run: python -m tests.clis.table --write"


def test_each_client_is_installed_in_one_version() -> None:
    assert set(versions()) == set(CLIENTS)


def test_what_a_client_cannot_do_is_the_name_of_a_test() -> None:
    for kind in CLIENTS.values():
        assert set(kind.cannot) <= set(behaviours())
