"""
The command `guardrails`, and `python -m guardrails`.
"""


def main() -> None:
    """
    Run the command line; ends the process with its exit code.
    """
    import sys

    if sys.argv[1:2] == ["mcp"]:
        # Before typer: it starts beside a server, and has to cost nothing.
        from .mcp.proxy.door import main as mcp

        sys.exit(mcp(sys.argv[2:]))
    from .cli import app

    app(prog_name="guardrails")


if __name__ == "__main__":
    main()
