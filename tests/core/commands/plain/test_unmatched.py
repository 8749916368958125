"""
Rules of an allow list that no command can match.
"""

from guardrails.core.commands import allows, plainly, rule, unmatched
from tests.tables import table


@table(
    ("text", "reason"),
    [
        ("> out/*", "a redirection"),
        (">out/*", "a redirection"),
        ("make > log.txt", "a redirection"),
        ("make 2>&1", "a redirection"),
        ("cat << EOF", "a here-document"),
        ("NODE_ENV=*", "a variable before a command"),
        ("{A,B}=*", "a variable before a command"),
        ("NODE_ENV=test npm test", "a variable before a command"),
        ("LD_*=x", "a variable before a command"),
        ("for *", "a word of the shell's own language"),
        ("time *", "a word of the shell's own language"),
        ("[ *", "a word of the shell's own language"),
        ("[[ -f * ]]", "a word of the shell's own language"),
        ("cat * | sort", "several commands"),
        ("cd web && npm test", "several commands"),
        ("ls; ls", "several commands"),
        ("npm start &", "a job in the background"),
        ("ls $HOME/*", "an expansion"),
        ("kill $(lsof *)", "a substitution"),
        ("ls ~/src/*", "a home directory"),
        ("(ls)", "a group"),
        ("! ls *", "a negation"),
        ("let *", "works out what its words are"),
    ],
)
def test_a_rule_that_needs_what_is_never_allowed_is_named(text: str, reason: str) -> None:
    assert reason in (unmatched(text) or "")


@table(
    ("text", "words"),
    [("> out/*", [">", "out/x"]), ("A=*", ["A=b"]), ("time *", ["time", "ls"]), ("ls ~/*", ["ls", "~/x"])],
)
def test_a_rule_that_is_named_allows_nothing_as_a_list_of_words_either(text: str, words: list[str]) -> None:
    assert not allows(rule(text), plainly(words).commands[0])


@table(
    ("text", "command"),
    [
        ("ls", "ls"),
        ("ls *", "ls 'a $x `y` > z'"),
        ("git {status,diff,log} *", "git log -1"),
        ("cat src/**.py", "cat src/a/b.py"),
        ("cat src/[ab]?.py", "cat src/a1.py"),
        ("grep 'a b$' *", "grep 'a b$' f"),
        ("grep a$ *", "grep 'a$' f"),
        ("grep '>' f", "grep '>' f"),
        ('grep "a \\" > $x" f', "grep 'a \" > $x' f"),
        ("find * -exec grep * {} ;", "find . -exec grep -n x '{}' ';'"),
        ("find * -exec grep * {} \\;", "find . -exec grep -n x '{}' ';'"),
        ("find * ! -name *", "find . '!' -name x"),
        ("git show HEAD^", "git show 'HEAD^'"),
        ("git diff HEAD~1", "git diff HEAD~1"),
        ("ls {/srv,~}/x", "ls /srv/x"),
        ("{if,ls} *", "ls -l"),
        ("'time' *", "/usr/bin/time ls"),
        ("make CC=*", "make CC=gcc"),
        ("env A=* ls", "env A=b ls"),
        ("echo café", "echo 'café'"),
        ("echo #*", "echo '#1'"),
        ("echo [", "echo '['"),
        ("'/opt/my tool/x' *", "'/opt/my tool/x' y"),
    ],
)
def test_a_rule_that_a_command_can_match_is_not(text: str, command: str) -> None:
    assert unmatched(text) is None
    assert allows(rule(text), plainly(command).commands[0])
