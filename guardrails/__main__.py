"""
The command `guardrails`, and `python -m guardrails`.
"""

import sys


def main() -> None:
    """
    Run the command line; ends the process with its exit code.
    """
    if sys.argv[1:2] == ["hook"]:
        # Started for each call of an agent: nothing that it does not need is imported.
        from .hooks.door import main as hook

        sys.exit(hook(sys.argv[2:]))
    if sys.argv[1:2] == ["mcp"]:
        # Before typer: it starts beside a server, and has to cost nothing.
        from .mcp.proxy.door import main as mcp

        sys.exit(mcp(sys.argv[2:]))
    from .cli import app

    app(prog_name="guardrails")


if __name__ == "__main__":
    main()
