"""
Repeats, looks after work and loops, with the real CLIs and the shipped policy.
"""

from .clients.base import Client
from .model import ANSWER
from .scripts import each, refused


def test_a_repeat_that_brings_nothing_is_refused(cli: Client) -> None:
    tests = cli.program("tests", "echo 1 failed")
    cli.guard()
    cli.model.says(each(*[cli.shell(tests)] * 4))
    ran = cli.run()
    assert (ran.code, ran.answer, cli.runs("tests")) == (0, ANSWER, 2)
    read = cli.model.asked[-1].results
    assert "1 failed" in read[1]
    assert [refused(text) for text in read] == [False, False, True, True]


def test_tests_run_again_after_an_edit(cli: Client) -> None:
    tests = cli.program("tests", "cat code.txt")
    code = cli.file("code.txt", "one\n")
    edits = [cli.edit(code, old, new) for old, new in (("one", "two"), ("two", "three"), ("three", "four"))]
    run = cli.shell(tests)
    cli.guard()
    cli.model.says(each(cli.look(code), run, edits[0], run, edits[1], run, edits[2], run))
    ran = cli.run()
    assert (ran.answer, cli.runs("tests"), code.read_text()) == (ANSWER, 4, "four\n")
    read = cli.model.asked[-1].results
    assert "four" in read[-1]
    assert not any(refused(text) for text in read)


def test_a_circle_of_looks_is_broken(cli: Client) -> None:
    looks = [cli.look(cli.file(f"{name}.txt", f"nothing in {name}\n")) for name in ("first", "second")]
    cli.guard()
    cli.model.says(each(*looks * 4))
    assert cli.run().answer == ANSWER
    read = cli.model.asked[-1].results
    assert [refused(text) for text in read][-2:] == [True, True]
    assert sum(refused(text) for text in read) >= 2
