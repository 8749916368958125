"""
An exporter or an SDK that raises or hangs costs telemetry, and no call; without the extra nothing is imported.
"""

import subprocess
import sys
import textwrap
import threading

from typing import Any

import pytest

from guardrails import Policy
from tests.otel.seen import Seen
from tests.tables import table


pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult


pytestmark = pytest.mark.system


def ten(tool: str, arguments: Any) -> int:
    return 10


class Hangs(SpanExporter):
    """
    Answers nobody until it is let go.
    """

    def __init__(self) -> None:
        self.go, self.asked = threading.Event(), threading.Event()

    def export(self, spans: Any) -> SpanExportResult:
        self.asked.set()
        self.go.wait(60)
        return SpanExportResult.SUCCESS


class Raises(SpanProcessor):
    """
    Raises wherever it is asked.
    """

    def __init__(self, *where: str) -> None:
        self._where = where

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if "start" in self._where:
            raise RuntimeError("start")

    def on_end(self, span: Any) -> None:
        if "end" in self._where:
            raise RuntimeError("end")


def test_an_exporter_that_hangs_on_a_thread_of_the_sdk_holds_up_no_call(seen: Seen) -> None:
    exporter = Hangs()
    seen.traces.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1))
    with seen.session(policy=Policy()) as session:
        for n in range(50):
            assert session.call("search", {"n": n}, ten).ok
        assert exporter.asked.wait(30)
        assert session.call("search", {"n": -1}, ten).ok
    exporter.go.set()


@pytest.mark.parametrize("where", [("start",), ("end",), ("start", "end")])
def test_an_sdk_that_raises_fails_no_call(seen: Seen, where: tuple[str, ...]) -> None:
    seen.traces.add_span_processor(Raises(*where))
    session = seen.session(policy=Policy())
    assert session.call("search", {}, ten).ok
    assert session.complete(session.decide("search", {"n": 2}, id="c2", claim=True), "done").ok
    assert sum(value for _, value in seen.metric("guardrails.calls")) == 2, "they are counted all the same"


PROGRAMS = {
    "without telemetry nothing is imported, and a session is a plain one": """
        import sys
        from guardrails import Policy, Session
        from guardrails.otel import of_process
        session = Policy.load("default").session("run-1")
        assert type(session) is Session
        assert session.call("search", {}, lambda *_: 10).ok
        assert of_process() is None
        assert not [name for name in sys.modules if name.startswith("opentelemetry")]
    """,
    "without the extra it is said what to install": """
        import sys
        sys.modules["opentelemetry"] = None
        try:
            from guardrails.otel import Telemetry
        except ImportError as error:
            assert 'pip install "toolcall-guardrails[otel]"' in str(error)
        else:
            raise AssertionError
    """,
    "a process has telemetry if its program has set a provider": """
        from opentelemetry import trace
        from guardrails.otel import Telemetry, of_process
        assert of_process() is None
        from opentelemetry.sdk.trace import TracerProvider
        trace.set_tracer_provider(TracerProvider())
        assert isinstance(of_process(), Telemetry)
    """,
    "the end of a process ends the spans of its last calls": """
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
        from guardrails import Policy
        from guardrails.otel import Telemetry
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
        session = Policy.load("default").session("run-1", telemetry=Telemetry(tracer_provider=traces))
        session.call("search", {}, lambda *_: 10)
    """,
}


@table("name", PROGRAMS)
def test_a_process_of_its_own(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAMS[name])],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ('"name": "execute_tool search"' in ran.stdout) is (name == list(PROGRAMS)[-1])
