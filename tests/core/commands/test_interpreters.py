"""
Shell commands in the code of other languages.
"""

from guardrails.core.commands.interpreters import literals
from tests.tables import table


@table(
    ("words", "stdin", "expected"),
    [
        (["python3.11", "-c", "os.system('a b')"], None, [["a b"], ["a b"]]),
        (["python", "-Sc", 'run(["a", "b"], shell=False)'], None, [["a", "b"], ["a"], ["b"]]),
        (["perl", "-we", "`a`"], None, [["a"], ["a"]]),
        (["ruby", "-e", "%x(a b)"], None, [["a b"], ["a b"]]),
        (["python", "-c", "print('sudo')"], None, []),
        (["python", "app.py"], "os.system('a')", []),
        (["python"], "os.system('a')", [["a"], ["a"]]),
        (["awk", "-F:", 'BEGIN { system("a") }', "file"], None, [["a"], ["a"]]),
        (["git", "-c", "alias.x=!a b", "x"], None, [["a b"]]),
        (["echo", "wow!"], None, []),
        (["ls"], None, []),
    ],
)
def test_only_code_that_runs_something_is_looked_at(words: list[str], stdin: str | None, expected: object) -> None:
    assert literals(words[0], words, stdin) == expected
