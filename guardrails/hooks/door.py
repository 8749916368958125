"""
The command `guardrails hook`: what the clients start for each event.
"""

import sys

from .options import CLIENTS, Options


USAGE = (
    "usage: guardrails hook [--client claude|codex|gemini] [--policy NAME|PATH] [--store PATH] [--records PATH] [--observe] "
    "[--user U] [--tenant T]"
)
_VALUES = ("client", "policy", "store", "records", "user", "tenant")


def main(argv: list[str]) -> int:
    """
    Answer the event on standard input, by the options *argv*; the exit code, which is always 0: another one may block a call.
    """
    try:
        options = parse(argv)
    except ValueError as error:
        sys.stderr.write(f"guardrails hook: {error}\n{USAGE}\n")
        answer = b"{}"
    else:
        from .respond import respond

        answer = respond(sys.stdin.buffer.read(), options)
    sys.stdout.buffer.write(answer + b"\n")
    sys.stdout.buffer.flush()
    return 0


def parse(argv: list[str]) -> Options:
    """
    The options that *argv* says. Raises ValueError for what is none.
    """
    said: dict[str, str | bool] = {}
    rest = iter(argv)
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        if word == "--observe":
            said["observe"] = True
        elif word.startswith("--") and name in _VALUES:
            given = value if equals else next(rest, None)
            if not given:
                raise ValueError(f"--{name} needs a value")
            said[name] = given
        else:
            raise ValueError(f"unknown option `{word}`")
    if said.get("client", "claude") not in CLIENTS:
        raise ValueError(f"unknown client `{said['client']}`: use {', '.join(CLIENTS)}")
    return Options(**said)  # type: ignore[arg-type]
