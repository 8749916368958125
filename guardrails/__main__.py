"""
The command `guardrails`, and `python -m guardrails`.
"""

import gc
import os
import sys


_READ = frozenset(("--help", "-h", "install", "uninstall", "status", "pins", "allow"))
"""First words of `hook` and `mcp` whose output a person reads; all else of them speaks to a client."""


def main() -> None:
    """
    Run the command line; ends the process with its exit code.
    """
    code: int | str | None
    try:
        try:
            code = _run(sys.argv[1:])
        except SystemExit as ended:
            code = ended.code
        if sys.stdout is not None:
            # Here and not at Python's own end: a disk that is full is told of in one line.
            sys.stdout.flush()
        if sys.argv[1:2] == ["hook"] and isinstance(code, int) and "opentelemetry.trace" not in sys.modules:
            # A process for each event: to tidy up takes as long as to decide, and what was decided is in the store.
            os._exit(code)
    except KeyboardInterrupt:
        # Before a command could say more.
        sys.stderr.write("interrupted\n")
        code = 130
    except OSError as error:
        if not _is_read(sys.argv[1:]):
            # The exit code 2 of a hook blocks a call.
            raise
        from .core.values.errors import os_message
        from .processes import let_go_of_stdout

        let_go_of_stdout()
        sys.stderr.write(f"{os_message(error)}\n")
        code = 2
    sys.exit(code)


def _is_read(words: "list[str]") -> bool:
    """
    Returns whether a person reads the output of the command line *words*.
    """
    return words[:1] not in (["hook"], ["mcp"]) or bool(words[1:] and words[1] in _READ)


def _run(words: "list[str]") -> int:
    if _is_read(words):
        from .processes import leave_quietly

        leave_quietly()
    if words[:1] == ["hook"]:
        # Started for each call of an agent: nothing that it does not need is imported, and it ends before it has garbage.
        gc.disable()
        from .hooks import main as hook

        return hook(words[1:])
    if words[:1] == ["mcp"]:
        # Before typer: it starts beside a server, and has to cost nothing.
        from .mcp.command import main as mcp

        return mcp(words[1:])
    from .cli import app

    app(prog_name="guardrails")
    return 0


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # The working folder, where an agent may write modules that are imported later.
        del sys.path[0]
    main()
