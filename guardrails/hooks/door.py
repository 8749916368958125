"""
The command `guardrails hook`: what the clients start for each event.
"""

import os

from .options import Options


_CHUNK = 1 << 18
FAILED = "guardrails hook: "
"""The beginning of what an installation says on standard error that is broken."""


def main(argv: "list[str]") -> int:
    """
    Answer the event on standard input, by the options *argv*; the exit code, which is always 0: another one may block a call.

    `install`, `uninstall` and `status` are ordinary commands beside it.
    """
    if argv[:1] in (["install"], ["uninstall"], ["status"], ["--help"], ["-h"]):
        from .install import main as command

        return command(argv)
    _write(1, _answer(_read(), Options.of(argv)) + b"\n")
    return 0


def _answer(data: bytes, options: Options) -> bytes:
    try:
        from .respond import respond

        return respond(data, options, trace=os.environ.get("TRACEPARENT", ""))
    except Exception as error:  # noqa: BLE001  an installation that is broken: another exit code would block every call
        _write(2, f"{FAILED}{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        return b"{}"


def _read() -> bytes:
    parts = []
    try:
        while part := os.read(0, _CHUNK):
            parts.append(part)
    except OSError:
        # Closed: an event without content, which is answered too.
        pass
    return b"".join(parts)


def _write(descriptor: int, text: bytes) -> None:
    try:
        while text:
            text = text[os.write(descriptor, text) :]
    except OSError:
        # Nobody reads it any more.
        pass
