"""
An MCP server of one tool, `count`, over standard input and output: it writes down each of its calls.

    python server.py FILE
"""

import json
import sys

from pathlib import Path
from typing import Any, Final


TOOL: Final = {
    "name": "count",
    "description": "Count the pages of a book",
    "inputSchema": {"type": "object", "properties": {"book": {"type": "string"}}, "required": ["book"]},
}


def answered(method: str, params: dict[str, Any], told: Path) -> dict[str, Any]:
    """
    The result of a request.
    """
    if method == "initialize":
        version = params["protocolVersion"]
        own = {"name": "books", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": own}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        book = params["arguments"]["book"]
        with told.open("a") as file:
            file.write(f"{book}\n")
        text = f"{book} has 12 pages" if book != "long" else "\n".join(f"page {n} of the book" for n in range(500))
        return {"content": [{"type": "text", "text": text}]}
    return {}


def main(told: Path) -> None:
    """
    Answer until the input ends.
    """
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            result = answered(request["method"], request.get("params") or {}, told)
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
