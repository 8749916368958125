"""
Which commands wait for something, and which are ordinary work (MISSION A12).
"""

import shlex

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.repetition.commands.looks import script_waits, words_wait
from guardrails.core.repetition.commands.programs import (
    ACTS,
    AWAITS,
    BUILDS,
    FILES,
    HAPPENS,
    LOOKERS,
    LOOKS,
    SERVICES,
    TASKS,
)
from guardrails.core.repetition.commands.verbs import is_live
from tests.tables import table


KNOWN: dict[str, list[str]] = yaml.safe_load((Path(__file__).parents[1] / "commands.yaml").read_text())
CASES = [(command, kind == "waits") for kind, commands in KNOWN.items() for command in commands]
PLAIN = [(command, expected) for command, expected in CASES if not set(command) & set("|&;<>()$`\n#{}!\\=")]
CALLED = [(command, expected) for command, expected in PLAIN if command.split()[0] in SERVICES]

SHELLS = ["bash -c", "sudo -E bash -lc", "env A=b timeout -k 5 60 sh -c", "nice -n 5 zsh -ic"]
WRAPPERS = ["sudo", "sudo -u app", "A=b", "env -i A=b", "time", "nohup", "timeout 9"]
OPTIONS = ["-n shop", "--context prod-7", "--endpoint=https://h", "-R o/r", "-f a.yml -f b.yml"]


def wrong(cases: list[tuple[str, bool]], changed: Callable[[str], str]) -> list[str]:
    """
    The commands that are taken for something else once they are *changed*.
    """
    return [changed(command) for command, expected in cases if script_waits(changed(command)) is not expected]


@table(("command", "expected"), CASES)
def test_who_waits_is_told_from_the_command(command: str, expected: bool) -> None:
    assert script_waits(command) is expected


@table("shell", SHELLS)
def test_a_shell_that_is_given_a_command_is_that_command(shell: str) -> None:
    assert wrong(CASES, lambda command: f"{shell} {shlex.quote(command)}") == []
    assert [command for command, expected in CASES if words_wait([*shell.split(), command]) is not expected] == []


def test_work_before_and_a_filter_behind_make_no_difference() -> None:
    assert wrong(CASES, lambda command: f"cd app && export A=b\n{command}") == []
    assert wrong(CASES, lambda command: f"({command}\n) 2>&1 | grep -v x | tail -n 5 > shown.txt") == []


def test_a_list_of_words_is_read_like_their_text() -> None:
    assert [command for command, expected in PLAIN if words_wait(shlex.split(command)) is not expected] == []


@table("wrapper", WRAPPERS)
def test_a_wrapper_is_seen_through(wrapper: str) -> None:
    assert wrong(PLAIN, lambda command: f"{wrapper} {command}") == []


@table("option", OPTIONS)
def test_options_before_the_verb_make_no_difference(option: str) -> None:
    assert len(CALLED) > 100
    assert wrong(CALLED, lambda command: command.replace(" ", f" {option} ", 1)) == []


@table("folder", ["/usr/local/bin/", "~/bin/", "./bin/"])
def test_the_folder_of_a_known_program_makes_no_difference(folder: str) -> None:
    assert wrong(CALLED, lambda command: folder + command) == []


@table("verb", ["get", "list", "describe", "show", "status", "ps", "logs", "wait", "events", "inspect"])
def test_a_verb_is_enough_for_a_program_that_nobody_has_heard_of(verb: str) -> None:
    assert script_waits(f"zorble {verb} thing-7")
    assert script_waits(f"zorble -p prod --zone=a things {verb} 7 | jq .state")
    assert not script_waits(f"zorble things delete {verb}")


@table("word", ["status", "logs", "get", "list"])
def test_programs_for_files_and_builds_take_names_for_no_verbs(word: str) -> None:
    # These run what they are given.
    programs = sorted((FILES | BUILDS) - {"trap", "fd", "find"})
    assert [program for program in programs if script_waits(f"{program} {word}")] == []
    assert [program for program in programs if script_waits(f"sudo {program} -x src/{word} {word}")] == []


@table("script", ["./tool", "bash tool.sh", "python3 tool.py", "node bin/tool.js", "make", "npm run"])
def test_a_script_of_the_project_is_believed_what_leaves_no_doubt(script: str) -> None:
    assert script_waits(f"{script} status")
    assert script_waits(f"{script} wait")
    assert not script_waits(f"{script} list")
    assert not script_waits(f"{script} build")


@table(
    ("address", "expected"),
    [
        ("http://localhost:8080/healthz", True),
        ("https://h/api/v1/jobs/7", True),
        ("https://h/repos/o/r/actions/runs/7?x=1", True),
        ("https://h/build/7/status", True),
        ("https://h/jobs", False),
        ("https://h/docs/status-page", False),
        ("https://h/healthy-food", False),
    ],
)
def test_an_address_of_what_changes_by_itself_is_live(address: str, expected: bool) -> None:
    assert is_live(address) is expected


def test_no_word_both_looks_and_acts() -> None:
    assert not (LOOKS | HAPPENS | AWAITS) & ACTS
    assert not (SERVICES | LOOKERS) & (FILES | BUILDS | TASKS)


words = st.sampled_from(sorted({word for command, _ in CASES for word in command.split()}))
texts = st.lists(
    words | st.text(max_size=5) | st.sampled_from([":" * 300, "a:" * 300 + "a", "--", '"$(', "<<E\n"]), max_size=20
)


@given(texts, st.sampled_from([" ", "", "\n", " | "]))
def test_any_text_is_read(parts: list[str], glue: str) -> None:
    assert script_waits(glue.join(parts)) in (True, False)
    assert words_wait(parts) in (True, False)


@table("piece", ["sudo ", "exec a ", "find -exec ", "bash -c ", "ssh h ", "watchful -- ", "xargs "])
def test_commands_in_commands_are_followed_only_so_far(piece: str) -> None:
    assert not script_waits(piece * 2_000 + "kubectl get pods")


def test_a_long_line_of_words_is_read_only_so_far() -> None:
    assert not words_wait(["zorble", *["-v"] * 10_000, "status"])
    many: Any = ["zorble", "status", *["x"] * 100_000]
    assert words_wait(many)
