"""
Stand in front of an MCP server and guard its tools. All else passes as it is.

Examples:
  guardrails mcp --policy strict --records mcp.jsonl -- mcp-server-time
  guardrails mcp pins
  guardrails mcp allow 'npx server-files' read_file
"""

import argparse
import os
import re
import sys

from importlib import import_module

from guardrails.core.text.control import visible
from guardrails.core.values.errors import GuardrailsError, os_message

from .pins import Pins, pins_file


def parser() -> argparse.ArgumentParser:
    """
    The options of the proxy.
    """
    made = _new("guardrails mcp", "guardrails mcp [OPTIONS] -- COMMAND [ARGUMENTS]... | --url URL")
    add = made.add_argument
    add("--policy", default="default", help="default, strict, observe, or a file")
    add("--session", help="the session of all calls; without it each process is one, or a client names it")
    add("--user", help="the user of the calls, for a policy with a scope `user`")
    add("--tenant", help="the tenant of the calls, for a scope `tenant`")
    add("--store", help="a file of SQLite for the state, which processes share, or redis://..; without it memory")
    add("--records", help="a file of JSON lines for what was decided")
    add("--pins", help="the lock file of tools: one that says something else of itself is held; none: no tool is")
    add("--url", help="a server over streamable HTTP, in place of a command")
    add("--header", type=_header, action="append", default=[], help="NAME:VALUE for it; ${NAME} is a variable")
    add("--listen", type=_address, help="[HOST:]PORT to listen on over streamable HTTP, before the server at --url")
    add("--identity-header", type=str.lower, help="the header that names the user of a request; a gateway sets it")
    add("--tenant-header", type=str.lower, help="the header that names its tenant")
    add("--tokens", help="a Python file whose `verifier`, a TokenVerifier of the SDK, says whose a token is")
    add("--allow-host", default="", help="names of this proxy beside localhost, and origins of pages, with commas")
    return made


def options_of(argv: list[str]) -> argparse.Namespace:
    """
    The options that *argv* says. Ends the process with code 2 if they are wrong, with 0 after `--help`.
    """
    made = parser()
    end = argv.index("--") if "--" in argv else len(argv)
    options = made.parse_args(argv[:end])
    options.command = argv[end + 1 :]
    if (options.url is None) is not bool(options.command):
        made.error("say how to start the server after `--`, or where it is by `--url`")
    headers = options.identity_header or options.tenant_header
    needs_url, needs_listen = options.header or options.listen, headers or options.tokens or options.allow_host
    if (needs_url and options.url is None) or (needs_listen and not options.listen) or (headers and options.tokens):
        made.error("`--header` and `--listen` need `--url`; `--allow-host`, and `--tokens` or headers, need `--listen`")
    return options


def main(argv: list[str]) -> int:
    """
    Run the command that *argv* names. Returns its exit code.
    """
    try:
        if argv[:1] in (["pins"], ["allow"]):
            return _pins(argv)
        options = options_of(argv)
        return int(import_module(".proxy", __package__).serve(options))
    except (GuardrailsError, OSError) as error:
        sys.stderr.write(f"guardrails mcp: {os_message(error) if isinstance(error, OSError) else error}\n")
        return 2


def _pins(argv: list[str]) -> int:
    made = _new(f"guardrails mcp {argv[0]}")
    made.add_argument("--pins", default=pins_file(), help="the lock file")
    if argv[0] == "allow":
        made.add_argument("server", help="its name, or the beginning of it")
        made.add_argument("tool", nargs="*", help="without one, all that are held")
    options = made.parse_args(argv[1:])
    if argv[0] == "allow":
        allowed = Pins(options.pins).allow(options.server, options.tool)
        sys.stdout.write("".join(f"allowed: {visible(name)}\n" for name in allowed))
        if allowed and not set(options.tool) - {*allowed}:
            return 0
        sys.stderr.write(f"guardrails mcp: not every tool of `{options.server}` that was named is held\n")
        return 1
    for server, tools in sorted(Pins(options.pins).read().items()):
        held = ", ".join(visible(name) for name, pin in tools.items() if pin[1:])
        sys.stdout.write(f"{server}: {len(tools)} tools, held: {held or 'none'}\n")
    return 0


def _new(name: str, usage: str | None = None) -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(name, usage, __doc__, formatter_class=plain, allow_abbrev=False)


def _address(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"`{given}` is no [HOST:]PORT")
    return host.strip("[]").lower() or "127.0.0.1", int(port)


def _header(given: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9_.-]+", name.strip()):
        raise argparse.ArgumentTypeError("a header is NAME:VALUE")
    try:
        return name.strip(), re.sub(r"\$\{(\w+)\}", lambda match: os.environ[match[1]], value).strip()
    except KeyError as error:
        raise argparse.ArgumentTypeError(f"the variable {error} of the header `{name}` is not set") from None
