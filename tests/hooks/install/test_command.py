"""
The command in the settings: right for the client's shell, and known again.
"""

import shlex

import pytest

from hypothesis import example, given, settings
from hypothesis import strategies as st

from guardrails.hooks.install.command import is_ours, options_of, quoted, split, words
from guardrails.hooks.options import Options


_NAMES = st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)


@given(_NAMES, _NAMES, st.booleans())
@example("0", "0'", False)
@example("0", "\u2018", False)
@example("0", "\u2018\u2018", False)
@example("'", "a\\", False)
@settings(max_examples=100, deadline=None)
def test_what_is_written_for_a_shell_is_read_again(folder: str, user: str, observe: bool) -> None:
    options = Options(client="codex", policy=f"/p/{folder}.yaml", user=user, observe=observe)
    said = words(f"/opt/{folder}/python3.12", options)
    for shell in ("sh", "powershell"):
        line = quoted(said, shell)
        read = split(line, windows=shell == "powershell")
        assert read == said
        assert options_of(read or []) == options


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/python3 -I -m guardrails hook --client=claude",
        "/usr/bin/python3.12 -m guardrails hook --client claude --policy default",
        "'/a b/bin/python3' -P -m guardrails hook",
        "guardrails hook",
        "/home/u/.local/bin/guardrails hook --client codex --observe",
    ],
)
def test_a_plain_command_of_the_hook_is_ours(command: str) -> None:
    assert is_ours(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "x",
        "python3",
        "python3 hook.py --client claude",
        "echo python3 -m guardrails hook",
        "sh -c 'python3 -m guardrails hook --client claude'",
        "python3 -m guardrails hook --client claude | tee log",
        "python3 -m guardrails hook; echo done",
        "FOO=1 python3 -m guardrails hook",
        "timeout 5 guardrails hook --client claude",
        "python3 -m guardrails report x",
        "python3 -m guardrails_of_theirs hook",
        "python3 -c 'import guardrails' hook",
        "guardrails hook --their-own-option",
        "guardrails hook install claude",
        "guardrails mcp -- x",
        "my-guardrails hook",
        "guardrails-ai hook",
        "'unclosed",
        "python3 -m guardrails hook 'unclosed",
    ],
)
def test_the_command_of_anybody_else_is_theirs(command: str) -> None:
    assert not is_ours(command)


def test_nothing_of_the_folder_that_it_is_started_in_is_imported() -> None:
    assert words("python3", Options(client="claude"))[1] == "-I"
    assert shlex.split("python3 -I -m guardrails hook")[:5] == words("python3", Options())[:5]
