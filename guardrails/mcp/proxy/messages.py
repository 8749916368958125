"""
JSON-RPC messages, read and written so that nothing in them is lost: whole numbers to the last digit, keys in their order.
"""

import json
import os
import re
import sys

from typing import Any, Final


DEEP: Final = "(nested too deep)"
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
"""A string, with or without its end, or a bracket."""


def read(data: bytes) -> Any:
    """
    Returns the message that *data* says. Raises ValueError if it is no JSON.

    Bytes that are no UTF-8 are read as the replacement mark, and a value that is nested too deep as `DEEP`. The
    original bytes are forwarded, and a call is guarded in each way of writing it.
    """
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A number of thousands of digits, which no call is judged by.
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        return json.loads(shallow(text), parse_int=_whole)


def shallow(text: str, deepest: int = 64) -> str:
    """
    The JSON *text* with `DEEP` in the place of all that is nested deeper than *deepest*.
    """
    kept: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == deepest + 1:
                kept += (text[start : token.start()], f'"{DEEP}"')
        elif token[0] in "]}":
            if depth == deepest + 1:
                start = token.end()
            depth -= 1
    return "".join((*kept, text[start:]))


def written(message: Any) -> bytes:
    """
    The line that says *message*. Raises ValueError if JSON cannot say it.
    """
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Halves of pairs, which are JSON as long as they are escaped.
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except RecursionError:
        raise ValueError("the message is too deep") from None


def carrying(line: bytes, carrier: dict[str, str]) -> bytes:
    """
    Returns the request *line* with the fields of *carrier* in the `_meta` of its parameters. The line is unchanged if
    it cannot be written anew without a loss.
    """
    # Fractions keep each of their digits: as text that nothing else is.
    mark = os.urandom(8).hex()
    try:
        message = json.loads(line.decode(), parse_float=lambda digits: f"{mark}{digits}")
        params = message["params"]
        message["params"] = {**params, "_meta": {**(params.get("_meta") or {}), **carrier}}
        made = written(message)
    except (ValueError, RecursionError):
        return line
    return re.sub(rb'"%b([^"]*)"' % mark.encode(), rb"\1", made)


def answer(id_: Any, result: Any) -> dict[str, Any]:
    """
    The response of the request *id_*.
    """
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def failure(id_: Any, code: int, message: str) -> dict[str, Any]:
    """
    The response of the request *id_* that failed.
    """
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def cancelled(id_: Any, reason: str) -> dict[str, Any]:
    """
    Returns the message that tells a server that nobody waits for the request *id_* any more.
    """
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_, "reason": reason}}


def unguarded(error: Exception) -> dict[str, Any]:
    """
    The result of a call that is not made since the guards themselves failed with *error*; what it says may hold paths.
    """
    why = f"the guards failed ({type(error).__name__}); the error output of the proxy says more"
    text = f"[guardrails:proxy] The call was not made, since {why}."
    return {"content": [{"type": "text", "text": text}], "isError": True}


def key_of(id_: Any) -> str | None:
    """
    Returns the key that tells the request *id_* from others: 1 is 1.0 and not "1". Returns None if it is no id.
    """
    if type(id_) is float and id_.is_integer():
        id_ = int(id_)
    if type(id_) is int or type(id_) is str or type(id_) is float:
        return f"{'s' if type(id_) is str else 'n'}{id_}"
    return None


def ids(ends: bytes) -> list[Any]:
    """
    Returns the possible ids of a message of which only the *ends* are there: the first id in it, and the last.
    """
    found = re.findall(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")', ends)
    return [read(one) for one in (*found[:1], *found[-1:])]


def tell_person(error: Exception) -> None:
    """
    Say on the error output that the proxy itself failed with *error*.
    """
    sys.stderr.write(f"guardrails mcp: {type(error).__name__}: {error}\n")
    sys.stderr.flush()


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < 4_000 else float(digits)
