"""
A collector on loopback: it takes exports by HTTP, and keeps them as OTLP writes them in JSON.
"""

import gzip
import threading

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest


pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.otel.seen import as_otlp


class Collector:
    """
    A context manager; *exports* is what came in.
    """

    def __init__(self) -> None:
        self.exports: list[dict[str, Any]] = []
        collector = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.exports.append(as_otlp(ExportTraceServiceRequest.FromString(body)))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def spans(self) -> list[dict[str, Any]]:
        """
        The spans, each with the name of its service and its attributes as a mapping.
        """
        spans = []
        for resource in [resource for export in self.exports for resource in export["resourceSpans"]]:
            service = _mapping(resource["resource"])["service.name"]
            found = [span for scope in resource["scopeSpans"] for span in scope["spans"]]
            spans += [{**span, "service": service, "attributes": _mapping(span)} for span in found]
        return spans


def _mapping(of: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in of.get("attributes", ())}
