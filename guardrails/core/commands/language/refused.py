"""
Constructs that the language does not have, and what to write instead.
"""

from typing import Final

from guardrails.core.commands.grammar.syntax import NotListedError


ADVICE: Final = {
    "a substitution": "run the inner command by a call of its own and write its result here",
    "an expansion": "write the value itself; text that holds `$` goes between single quotes",
    "a here-document with something to expand": "put its first word between single quotes, as `<<'EOF'`, so that its text stays as it is",
    "a here-document that never ends": "end it with a line that is just its first word",
    "a here-document of another form": "write `<<'EOF'`, its text on the lines below, and `EOF` on a line of its own",
    "a line end between quotes beside a here-document": "keep quotes on one line with it, or write the text to a file",
    "a redirection of another handle": "only `<`, `>`, `>>`, `2>`, `2>>`, `&>`, `2>&1` and `>&2` are known: write one of them",
    "a redirection without a file": "write the name of one file behind it, without a pattern",
    "a redirection to a file known only when it runs": "write the name of the file without `*`, `?`, `[` and braces",
    "a group": "write `( command; command )`, or the commands one after another with `&&` or `;` between them",
    "a function": "write each command out",
    "a brace": "write each word out; a brace that is meant goes between single quotes",
    "too many words": "give the program fewer words, and call it several times",
    "a pattern of another form": "put it between single quotes if the program reads it, or write `*`, `?`, `[abc]` or `[!abc]`",
    "a home directory": "write the path of the directory out; a `~` that is meant goes between single quotes",
    "a backslash at the end of a word": "put the word between single quotes, or write all on one line",
    "a job in the background": "leave the `&` out: it runs in the foreground; `&&` joins two commands",
    "a pipe of both outputs": "write `2>&1 |`",
    "a comment inside of a word": "put the word between single quotes",
    "a negation": "leave it out, or swap `&&` and `||` behind the command",
    "a control or invisible character": "leave it out",
    "a quote that is never closed": "close it; an apostrophe goes between double quotes",
    "a missing command": "write one command before and one after each `|`, `&&` and `||`",
    "a word of the shell's own language": "write each command out, without loops and conditions; `test` stands for `[[`",
    "a variable without a command": "write it before the command that needs it: `NAME=value command`",
    "a variable of another form": "write `NAME=value`, with a value that nothing has to work out",
    "no name of a program": "begin the command with the name of a program, as it is",
    "a change of folder of another form": "write `cd FOLDER` by itself, with `&&` behind it, and a folder of the workspace",
    "nested too deep": "write the commands one after another",
}
"""By kind what to write instead."""
EXIT_CODE: Final = "leave `$?` out; the result tells the exit code of the last command"
BUILTINS: Final = {
    **dict.fromkeys(
        ("export", "declare", "typeset", "local", "readonly", "unset"),
        "write `NAME=value` before the command that needs it",
    ),
    **dict.fromkeys(
        ("source", "."), "name the program by its path, as `.venv/bin/python`, or run the file with its interpreter"
    ),
    **dict.fromkeys(("eval", "exec", "builtin"), "write the command itself"),
    **dict.fromkeys(("type", "hash", "whence"), "write `command -v NAME`"),
    **dict.fromkeys(("set", "shopt", "enable"), "leave it out; `&&` between commands stops at the first that fails"),
    **dict.fromkeys(
        ("exit", "return", "logout"), "leave it out; the exit code is that of the last command, and `false` fails"
    ),
    **dict.fromkeys(("pushd", "popd", "dirs"), "write `cd FOLDER`, or `( cd FOLDER && command )`"),
    **dict.fromkeys(
        ("jobs", "bg", "fg", "wait", "disown", "suspend", "coproc"), "leave it out; commands run in the foreground"
    ),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "shift", "let"), "write the values out"),
    **dict.fromkeys(("alias", "unalias"), "write the command out"),
    **dict.fromkeys(("break", "continue"), "write each command out, without loops"),
    **dict.fromkeys(("ulimit", "umask", "times", "trap", "history", "fc", "bind", "help"), "leave it out"),
    **dict.fromkeys(("caller", "compgen", "complete", "compopt"), "leave it out"),
    ":": "write `true`",
    "command": "leave `command` out; `command -v NAME` tells where a program is",
}
"""By name of what only a shell has as a command of its own: what to write instead."""

_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by Unicode's tables that show nothing."""


class NotInLanguageError(NotListedError):
    """
    Text that is not in the language: which *kind* of thing stands at which *place* (from 0), and what to write instead.
    """

    advice: str

    def __init__(self, kind: str, place: int, advice: str | None = None) -> None:
        super().__init__(
            "a command is missing" if kind == "a missing command" else f"character {place + 1} of it is {kind}",
            advice or ADVICE[kind],
        )
        self.kind = kind
        self.place = place


def seen(text: str, place: int) -> None:
    """
    Raise NotInLanguageError if *text*, which stands at *place*, holds what shows nothing, but for line ends and tabs.
    """
    shown = text.replace("\n", "").replace("\t", "")
    if shown.isprintable() and _UNSEEN.isdisjoint(shown):
        return
    for offset, char in enumerate(text):
        if char not in "\n\t" and (not char.isprintable() or char in _UNSEEN):
            raise NotInLanguageError("a control or invisible character", place + offset)
