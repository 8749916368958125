"""
What the model reads of results, with the real CLIs.
"""

from .clients.base import Client
from .model import ANSWER
from .scripts import each


def test_a_result_that_is_too_long_is_cut(cli: Client) -> None:
    flood = cli.program("flood", "i=0; while [ $i -lt 200 ]; do echo row $i of the long list; i=$((i+1)); done")
    cli.guard("version: 1\ntruncate: {max_bytes: 1KiB}\n")
    cli.model.says(each(cli.shell(flood)))
    assert cli.run().answer == ANSWER
    (read,) = cli.model.asked[-1].results
    assert "row 0 of the long list" in read
    assert "row 100 of the long list" not in read
    assert len(read) < 2500


def test_a_call_that_failed_may_be_tried_again(cli: Client) -> None:
    first = f"[ $(wc -l < {cli.place}/runs-flaky) -lt 2 ]"
    flaky = cli.program("flaky", f"if {first}; then echo timed out; exit 7; fi; echo fine")
    cli.guard()
    cli.model.says(each(*[cli.shell(flaky)] * 2))
    assert cli.run().answer == ANSWER
    assert cli.runs("flaky") == 2
    assert "fine" in cli.model.asked[-1].results[-1]
