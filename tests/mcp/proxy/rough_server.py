"""
An MCP server over stdio that writes bytes as it likes: standard library only, so that it starts at once.

A tool's name says what it does; `ODD` holds the answers of `odd`, byte for byte, with `@` in place of the request's id.
Any method that is not known is answered with the bytes of the request, in hexadecimal. Variables of the environment:
`ROUGH_TOOLS` more tools, `ROUGH_LOG` a file for the lines that it reads, `ROUGH_PID` one for its process, `ROUGH_REF` a
schema that is elsewhere.
"""

import json
import os
import sys
import time

from pathlib import Path
from typing import Any


OBJECT: dict[str, Any] = {"type": "object"}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TEXT = b'"content":[{"type":"text","text":'
ODD: dict[str, bytes] = {
    "order": b'{"result":{"isError":false,' + TEXT + b'"a"}]},"jsonrpc":"2.0","id":@}',
    "spaces": b'  { "jsonrpc" : "2.0" , "id" : @ , "result" : { ' + TEXT + b'"a" } ] } }\t',
    "return": b'{"jsonrpc":"2.0","id":@,"result":{' + TEXT + b'"a"}]}}\r',
    "utf8": b'{"jsonrpc":"2.0","id":@,"result":{' + TEXT + b'"caf\xe9 \xff\xfe"}]}}',
    "surrogate": b'{"jsonrpc":"2.0","id":@,"result":{' + TEXT + b'"\\ud800 \\uDFFF"}]}}',
    "nul": b'{"jsonrpc":"2.0","id":@,"result":{' + TEXT + b'"a\\u0000b"}]}}',
    "huge": b'{"jsonrpc":"2.0","id":@,"result":{"n":' + b"9" * 400 + b"," + TEXT + b'"a"}]}}',
    "exponent": b'{"jsonrpc":"2.0","id":@,"result":{"n":1e400,"m":-0.0,"k":1.0000000000000000000001,'
    + TEXT
    + b'"a"}]}}',
    "nan": b'{"jsonrpc":"2.0","id":@,"result":{"n":NaN,' + TEXT + b'"a"}]}}',
    "twice": b'{"jsonrpc":"2.0","id":@,"result":{' + TEXT + b'"a"}],' + TEXT + b'"b"}]}}',
    "deep": b'{"jsonrpc":"2.0","id":@,"result":{"d":' + b"[" * 900 + b"]" * 900 + b"," + TEXT + b'"a"}]}}',
    "abyss": b'{"jsonrpc":"2.0","id":@,"result":{"d":' + b"[" * 90_000 + b"]" * 90_000 + b"," + TEXT + b'"a"}]}}',
    "separators": b'{"jsonrpc":"2.0","id":@,"result":{' + TEXT + b'"a\xe2\x80\xa8b\x0bc\x0cd\xc2\x85e\x1c"}]}}',
    "escaped": b'{"jsonrpc":"2.0","\\u0069d":@,"r\\u0065sult":{' + TEXT + b'"a\\u002fb"}]}}',
    "bare": b'{"jsonrpc":"2.0","id":@,"result":{}}',
    "number": b'{"jsonrpc":"2.0","id":@,"result":7}',
    "null": b'{"jsonrpc":"2.0","id":@,"result":null}',
    "both": b'{"jsonrpc":"2.0","id":@,"result":{},"error":{"code":-1,"message":"m"}}',
    "neither": b'{"jsonrpc":"2.0","id":@}',
    "error": b'{"jsonrpc":"2.0","id":@,"error":{"code":-32603,"message":"broken","data":{"z":1,"a":2}}}',
    "words": b'{"jsonrpc":"2.0","id":@,"error":"broken"}',
    "content": b'{"jsonrpc":"2.0","id":@,"result":{"content":"not a list"}}',
    "kinds": b'{"jsonrpc":"2.0","id":@,"result":{"content":[7,null,{"type":"new_kind","x":1},{"text":"no type"}]}}',
    "task": b'{"jsonrpc":"2.0","id":@,"result":{"task":{"taskId":"t1","status":"working","ttl":60000}}}',
    "future": b'{"jsonrpc":"2.0","id":@,"result":{"resultType":"of 2031","x":1}}',
}
JUNK = (
    b"Server listening ...",
    b"",
    b"\xff\xfe\x00",
    b'{"jsonrpc":"2.0","id":"unknown","result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}',
    b"[1, 2",
    b"7",
    b"null",
    b'"words"',
    b'{"jsonrpc":"2.0","id":{"a":1},"result":{}}',
    b'{"jsonrpc":"2.0","id":[1],"result":{}}',
    b'{"jsonrpc":"2.0","id":1e3,"result":{}}',
    b'[{"jsonrpc":"2.0","id":"of a batch","result":{}}]',
)
TOOLS = (
    *("odd", "junk", "hear", "count", "echo", "die", "hang", "slow", "flood", "endless", "big", "again"),
    *("unknown_id", "ask", "stop_reading", "change", "float_id"),
)
counted = 0
changed = False


def write(line: bytes, end: bytes = b"\n") -> None:
    sys.stdout.buffer.write(line + end)
    sys.stdout.buffer.flush()


def answer(name: Any, result: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", "id": name, "result": result}).encode())


def say(name: Any, words: str) -> None:
    answer(name, {"content": [{"type": "text", "text": words}]})


def note(data: Any) -> bytes:
    params = {"level": "info", "data": data}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).encode()


def call(name: Any, params: dict[str, Any], line: bytes) -> None:
    global counted  # noqa: PLW0603  a process has one count
    arguments = params.get("arguments") or {}
    tool = params["name"].rpartition("__")[2]
    if tool == "odd":
        write(ODD[arguments["case"]].replace(b"@", json.dumps(name).encode()))
    elif tool == "junk":
        for junk in JUNK:
            write(junk)
        say(name, "after junk")
    elif tool == "hear":
        say(name, line.hex())
    elif tool == "count":
        counted += 1
        say(name, f"call {counted}")
    elif tool == "die":
        os._exit(3)
    elif tool == "hang":
        time.sleep(600)
    elif tool == "slow":
        time.sleep(arguments.get("seconds", 1))
        say(name, "at last")
    elif tool == "flood":
        for n in range(10_000):
            write(note(n))
        say(name, "after the flood")
    elif tool == "endless":
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"')
        for _ in range(arguments["megabytes"]):
            sys.stdout.buffer.write(b"x" * 1_000_000)
        write(b'"}}')
        say(name, "after the line")
    elif tool == "big":
        head = b'{"jsonrpc":"2.0","id":' + json.dumps(name).encode() + b',"result":{' + TEXT + b'"'
        sys.stdout.buffer.write(head)
        for _ in range(arguments["megabytes"]):
            sys.stdout.buffer.write(b"y" * 1_000_000)
        write(b'"}]}}')
    elif tool == "again":
        say(name, "first")
        say(name, "second")
    elif tool == "change":
        global changed  # noqa: PLW0603
        changed = True
        write(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
        say(name, "changed")
    elif tool == "float_id":
        answer(float(name), {"content": [{"type": "text", "text": "as Lua does"}]})
    elif tool == "unknown_id":
        say("never asked", "whose?")
        say(name, "mine")
    elif tool == "ask":
        write(json.dumps({"jsonrpc": "2.0", "id": name, "method": "roots/list"}).encode())
        reply = sys.stdin.buffer.readline()
        say(name, reply.hex())
    elif tool == "stop_reading":
        say(name, "deaf now")
        time.sleep(600)
    else:
        say(name, json.dumps(arguments, sort_keys=True))


def listing(params: dict[str, Any]) -> dict[str, Any]:
    """
    The tools, a page at a time if there are many.
    """
    more, start = int(os.environ.get("ROUGH_TOOLS", "0")), int(params.get("cursor") or 0)
    tools = [{"name": name, "inputSchema": OBJECT} for name in TOOLS]
    tools.append({"name": "search", "inputSchema": OBJECT if changed else CITY, "annotations": {"readOnlyHint": True}})
    remote = {"type": "object", "properties": {"x": {"$ref": os.environ.get("ROUGH_REF", "#")}}}
    tools.append({"name": "remote", "inputSchema": remote})
    tools.append({"name": "schema_is_wrong", "inputSchema": {"type": "no such type", "required": 7}})
    tools += [{"name": f"tool_{n}", "inputSchema": CITY} for n in range(more)]
    end = start + 100
    page: dict[str, Any] = {"tools": tools[start:end]}
    if end < len(tools):
        page["nextCursor"] = str(end)
    return page


def serve() -> None:
    if pid := os.environ.get("ROUGH_PID"):
        Path(pid).write_text(str(os.getpid()))
    log = Path(os.environ.get("ROUGH_LOG", os.devnull)).open("ab", buffering=0)  # noqa: SIM115  as long as the process
    for raw in sys.stdin.buffer:
        line = raw.rstrip(b"\n")
        log.write(raw)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            write(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}')
            continue
        if isinstance(message, list):
            write(b'{"heard":"' + line.hex().encode() + b'"}')
            continue
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            continue
        name, method, params = message["id"], message["method"], message.get("params") or {}
        if method == "initialize":
            server = {"name": "rough", "version": "1"}
            answer(name, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server})
        elif method == "tools/list" and isinstance(params, dict):
            answer(name, listing(params))
        elif method == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str):
            call(name, params, line)
        else:
            answer(name, {"heard": line.hex()})


if __name__ == "__main__":
    serve()
