"""
The command `guardrails` in a process whose SDK writes spans into a file, set up as `opentelemetry-instrument` does it:

    python traced.py FILE ARGUMENTS...
"""

import sys

from io import FileIO, TextIOWrapper

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter


if __name__ == "__main__":
    file = TextIOWrapper(FileIO(sys.argv.pop(1), "a"), write_through=True)
    provider = TracerProvider(resource=Resource({"service.name": sys.argv[1]}))
    exporter = ConsoleSpanExporter(out=file, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    from guardrails.__main__ import main

    main()
