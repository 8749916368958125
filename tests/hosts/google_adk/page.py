"""
The page's program, with ADK's own client of Gemini against a server of the test's.
"""

import json
import threading

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.hosts.page import programs


CALL = {"functionCall": {"name": "search", "args": {"query": "x"}}}


@contextmanager
def gemini() -> Iterator[tuple[str, list[Any]]]:
    """
    The address of a model that makes the same call until functions are off, and what it was sent.
    """
    sent: list[Any] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent.append(body)
            mode = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode")
            part = {"text": "I found nothing."} if mode == "NONE" else CALL
            said = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
            text = json.dumps({**said, "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 15}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *given: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        server.server_close()


class Page:
    @pytest.mark.system
    def test_the_program_of_the_page_prints_what_it_says(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        [(program, printed)] = programs("google-adk")
        with gemini() as (address, sent):
            monkeypatch.setenv("GOOGLE_API_KEY", "-")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", address)
            exec(compile(program, "hosts.md", "exec"), {})
        assert capsys.readouterr().out == printed
        assert sent[-1]["tools"] == sent[0]["tools"]
        assert "toolConfig" not in sent[0]
        results = [part for content in sent[-1]["contents"] for part in content["parts"] if "functionResponse" in part]
        assert len([part for part in results if part["functionResponse"]["response"]["status"] == "success"]) <= 3
