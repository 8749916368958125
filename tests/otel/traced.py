"""
The command `guardrails` in a process whose SDK exports to a collector, as `opentelemetry-instrument` sets one up:

    python traced.py ENDPOINT ARGUMENTS...
"""

import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


if __name__ == "__main__":
    endpoint = sys.argv.pop(1)
    provider = TracerProvider(resource=Resource({"service.name": sys.argv[1]}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces"), schedule_delay_millis=50))
    trace.set_tracer_provider(provider)
    from guardrails.__main__ import main

    main()
