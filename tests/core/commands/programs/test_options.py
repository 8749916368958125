"""
What the rules say of an option, held against the programs of this machine: a flag that took the next word would hide it.
"""

import shutil
import subprocess

from pathlib import Path

import pytest

from guardrails.core.commands.programs.files import program


VALUES = {"number": "3", "path": "a", "searched": "a", "archive": "a", "sed": "p"}
TELLING = {"--help", "--version", "-h", "-V", "-v"}
"""They end the program before another option is read, in one program or the other."""


def version(words: list[str], folder: Path) -> str:
    done = subprocess.run(  # noqa: S603
        words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=20
    )
    return done.stdout


@pytest.mark.parametrize("name", ["date", "diff", "file", "grep", "rg", "sed", "sort", "tar", "uniq"])
def test_flags_take_no_word_and_valued_options_take_one(name: str, tmp_path: Path) -> None:
    if shutil.which(name) is None or not (said := version([name, "--version"], tmp_path)):
        pytest.skip(f"{name} is not installed here, or of another make")
    other = []
    for option, listed in program(name).rules.options.items():
        value = VALUES.get(listed.kind)
        if option in TELLING or (listed.takes == "valued" and value is None):
            continue
        words = [option, value] if listed.takes == "valued" and value else [option]
        found = version([name, *words, "--version"], tmp_path)
        # An option that this version lacks ends it without a word.
        if found not in (said, ""):
            other.append(words)
        if listed.takes == "flags" and not found and version([name, option, "3", "--version"], tmp_path) == said:
            other.append(words)
    assert other == []
