"""
The command `guardrails`, and `python -m guardrails`.
"""

import sys


_READ = frozenset(("--help", "-h", "install", "uninstall", "status", "snippet", "pins", "allow"))
"""First words of `hook` and `mcp` whose output a person reads; all else of them speaks to a client."""


def main() -> None:
    """
    Run the command line; ends the process with its exit code.
    """
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:
        # Before a command could say more.
        sys.stderr.write("interrupted\n")
        code = 130
    sys.exit(code)


def _run(words: "list[str]") -> int:
    apart = words[0] if words[:1] in (["hook"], ["mcp"]) else None
    if apart is None or (words[1:] and words[1] in _READ):
        from .processes.streams import leave_quietly

        leave_quietly()
    if apart == "hook":
        # Started for each call of an agent: nothing that it does not need is imported.
        from .hooks.door import main as hook

        return hook(words[1:])
    if apart == "mcp":
        # Before typer: it starts beside a server, and has to cost nothing.
        from .mcp.proxy.door import main as mcp

        return mcp(words[1:])
    from .cli import app

    app(prog_name="guardrails")
    return 0


if __name__ == "__main__":
    main()
