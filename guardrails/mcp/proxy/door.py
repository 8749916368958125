"""
The command `guardrails mcp`: it starts the server first, and imports the rest of the library when lines flow.
"""

import sys

from .options import USAGE, HelpAsked, Options, UsageError, options_of


def main(argv: list[str]) -> int:
    """
    Run the command that *argv* names. Returns its exit code.
    """
    if argv[:1] in (["pins"], ["allow"]):
        return _pins(argv)
    try:
        options = options_of(argv)
    except HelpAsked:
        sys.stdout.write(USAGE)
        return 0
    except UsageError as error:
        sys.stderr.write(f"guardrails mcp: {error}\nTry `guardrails mcp --help`.\n")
        return 2
    if options.config is not None:
        from .servers import chosen, printed

        try:
            if options.server is None:
                sys.stdout.write(printed(options))
                return 0
            options = chosen(options)
        except Exception as error:  # noqa: BLE001  of a file that is wrong nothing is started
            from guardrails.core.values.errors import os_message

            said = os_message(error) if isinstance(error, OSError) else error
            sys.stderr.write(f"guardrails mcp: {said}\n")
            return 2
    return _run(options)


def _run(options: Options) -> int:
    from .ends.child import start
    from .loading import checked

    try:
        policy = checked(options)
    except Exception as error:  # noqa: BLE001  nothing is started under a policy that is wrong
        sys.stderr.write(
            f"guardrails mcp: the policy `{options.policy}` is not valid, so nothing is started\n{error}\n"
        )
        return 2
    if options.listen is not None:
        from .ends.serve import run

        return run(options, policy)
    if options.url is not None:
        from .ends.stdio import RemoteFront

        return RemoteFront(options, policy).run()
    child = start(options)
    if isinstance(child, int):
        return child
    # The server starts meanwhile.
    from .ends.stdio import Front

    return Front(child, options, policy).run()


def _pins(argv: list[str]) -> int:
    from importlib import import_module

    code: int = import_module("guardrails.mcp.pins.command").main(argv)
    return code
