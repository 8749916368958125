"""
A server over stdio of the standard library alone, which does what its tools are asked to.
"""

import json
import os
import signal
import sys
import time

from typing import Any


STRICT = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
    "additionalProperties": False,
}
ROWS = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "string"}}},
    "required": ["rows"],
    "additionalProperties": False,
}
ANY = {"type": "object"}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "add",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
        "outputSchema": STRICT,
        "annotations": {"readOnlyHint": True},
    },
    {"name": "rows", "inputSchema": ANY, "outputSchema": ROWS},
    {"name": "echo", "inputSchema": ANY},
    {"name": "text", "inputSchema": ANY},
    {"name": "fail", "inputSchema": ANY},
    {"name": "raw", "inputSchema": ANY},
    {"name": "die", "inputSchema": ANY},
    {"name": "hang", "inputSchema": ANY},
    {"name": "ask", "inputSchema": ANY},
    {"name": "task", "inputSchema": ANY},
    {"name": "broken", "inputSchema": {"type": "no such type"}},
    {"name": "remote", "inputSchema": {"$ref": "https://example.com/schema.json"}},
]


def say(message: object) -> None:
    """
    Send *message*.
    """
    out(json.dumps(message).encode() + b"\n")


def out(data: bytes) -> None:
    """
    Send *data* as it is.
    """
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def text(said: str, **more: object) -> dict[str, object]:
    """
    A result of one text.
    """
    return {"content": [{"type": "text", "text": said}], **more}


def call(id_: object, params: dict[str, Any]) -> None:
    """
    Do what the tool is asked to.
    """
    name, given = params["name"], params.get("arguments") or {}
    made: dict[str, object]
    if name == "add":
        total = int(given["a"]) + int(given["b"])
        made = text(str(total), structuredContent={"sum": total})
    elif name == "rows":
        found = ["x" * 50] * given["n"]
        made = text(json.dumps(found), structuredContent={"rows": found})
    elif name == "text":
        made = text(given.get("text", "x") * given.get("times", 1))
    elif name == "fail":
        made = text(given.get("text", "it failed"), isError=True)
    elif name == "raw":
        out(given["line"].encode("utf-8", "surrogateescape").replace(b"$ID", json.dumps(id_).encode()))
        return
    elif name == "die":
        os._exit(given.get("code", 3))
    elif name == "hang":
        time.sleep(given.get("seconds", 60))
        made = text("late")
    elif name == "ask":
        if "inputResponses" in params:
            made = text("thanks")
        else:
            made = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}
    elif name == "task":
        made = {"task": {"taskId": str(time.monotonic_ns()), "status": "working"}}
    else:
        made = text(json.dumps(params))
    say({"jsonrpc": "2.0", "id": id_, "result": made})


def main() -> None:
    """
    Answer until the input ends.
    """
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    log = open(os.environ["SERVER_LOG"], "ab", buffering=0) if "SERVER_LOG" in os.environ else None  # noqa: PTH123, SIM115
    for line in sys.stdin.buffer:
        if log is not None:
            log.write(line)
        try:
            said = json.loads(line)
        except ValueError:
            continue
        for one in said if isinstance(said, list) else [said]:
            method, id_ = one.get("method"), one.get("id")
            if method == "initialize":
                info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                say({"jsonrpc": "2.0", "id": id_, "result": {**info, "serverInfo": {"name": "s", "version": "1"}}})
            elif method == "tools/list":
                say({"jsonrpc": "2.0", "id": id_, "result": {"tools": TOOLS[:1] if "plain" in sys.argv else TOOLS}})
            elif method == "tools/call":
                call(id_, one["params"])
            elif method == "say":
                out(one["params"]["line"].encode("utf-8", "surrogateescape"))
            elif method == "ping":
                say({"jsonrpc": "2.0", "id": id_, "result": {}})
            elif id_ is not None and method is not None:
                say({"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "no such method"}})
    if "stubborn" in sys.argv:
        time.sleep(60)
    sys.exit(int(os.environ.get("SERVER_CODE", "0")))


if __name__ == "__main__":
    main()
