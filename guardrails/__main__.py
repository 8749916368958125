"""
The command `guardrails`, and `python -m guardrails`.
"""


def main() -> None:
    """
    Run the command line; ends the process with its exit code.
    """
    from .cli import app

    app(prog_name="guardrails")


if __name__ == "__main__":
    main()
