"""
The command `guardrails hook`: what the clients start for each event.

It asks the resident process, which has the library imported, and answers by itself if there is none.
"""

import os

from .options import Options


USAGE = (
    "usage: guardrails hook [--client claude|codex|gemini] [--policy NAME|PATH] [--store PATH|URL] [--records PATH] [--observe] "
    "[--user U] [--tenant T]"
)
_CHUNK = 1 << 18


def main(argv: "list[str]", *, resident: bool = True) -> int:
    """
    Answer the event on standard input, by the options *argv*; the exit code, which is always 0: another one may block a call.

    Without *resident* no other process is asked. `install`, `uninstall` and `status` are ordinary commands beside it.
    """
    if argv[:1] in (["install"], ["uninstall"], ["status"], ["--help"], ["-h"]):
        from .install.run import main as command

        return command(argv)
    try:
        options = Options.of(argv)
    except (OSError, ValueError) as error:  # of a working directory that is not there any more too
        _write(2, f"guardrails hook: {error}\n{USAGE}\n".encode("utf-8", "replace"))
        _write(1, b"{}\n")
        return 0
    data = _read()
    # The name of this event, so that it is the same one for whoever answers it.
    once = os.urandom(8).hex()
    trace = os.environ.get("TRACEPARENT", "")
    found, traced = None, _is_traced()
    if resident and not traced:
        from .resident.ask import ask

        found = ask([f"{once} {trace}".strip(), *options.words()], data)
    if found is not None:
        answer, told = found
        _write(2, told)
    else:
        answer = _alone(data, options, once, trace)
    _write(1, answer + b"\n")
    if traced:
        from guardrails.integrations.otel import leave

        leave()
    return 0


def _is_traced() -> bool:
    """
    Returns whether this very process exports spans, as no other one would.
    """
    import sys

    if "opentelemetry.trace" not in sys.modules:
        return False
    from guardrails.integrations.otel import of_process

    return of_process() is not None


def _alone(data: bytes, options: Options, once: str, trace: str) -> bytes:
    try:
        from .respond import respond

        return respond(data, options, once=once, trace=trace)
    except Exception as error:  # noqa: BLE001  an installation that is broken: another exit code would block every call
        _write(2, f"guardrails hook: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
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
