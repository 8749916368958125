"""
Spans and metrics as an SDK has them, and as it exports them.
"""

import base64

from collections.abc import Mapping
from typing import Any

import pytest


pytest.importorskip("opentelemetry.sdk")

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrails import MemorySink, Policy, Session
from guardrails.otel import Telemetry


class Seen:
    """
    An SDK in memory, and telemetry that goes to it.
    """

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.traces = TracerProvider()
        self.traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self.reader])
        self.telemetry = Telemetry(tracer_provider=self.traces, meter_provider=self.meters, **options)
        self.sink = MemorySink()
        self.tracer = self.traces.get_tracer("the tests")

    def session(self, name: str = "run-1", policy: Policy | None = None, **options: Any) -> Session:
        made = Policy.load("default") if policy is None else policy
        return made.session(name, **{"telemetry": self.telemetry, "records": self.sink, **options})

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def calls(self) -> list[dict[str, Any]]:
        """
        The attributes of the spans of calls.
        """
        return [dict(one.attributes or {}) for one in self.spans if one.name.startswith("execute_tool ")]

    def metric(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """
        The labels and values of a metric.
        """
        data: Any = self.reader.get_metrics_data()
        [resource] = data.resource_metrics
        [scope] = resource.scope_metrics
        [points] = [metric.data.data_points for metric in scope.metrics if metric.name == name]
        return [(dict(point.attributes), getattr(point, "value", getattr(point, "sum", 0))) for point in points]


def as_otlp(message: Any) -> dict[str, Any]:
    """
    An export as OTLP writes it in JSON: ids are hexadecimal there, other than protobuf's own form has them.
    """

    def hexed(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                key: base64.b64decode(said).hex() if key in {"traceId", "spanId", "parentSpanId"} else hexed(said)
                for key, said in value.items()
            }
        return [hexed(one) for one in value] if isinstance(value, list) else value

    made: dict[str, Any] = hexed(MessageToDict(message))
    return made
