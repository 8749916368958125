from guardrails.sinks import OnRecord, Record
from tests.sinks.conftest import Heard


def test_a_callable_that_raises_does_not_reach_the_call_and_is_said_once(heard: Heard) -> None:
    def refuse(record: Record) -> None:
        raise RuntimeError("password is hunter2")

    sink = OnRecord(refuse)
    sink.put({"n": 1})
    sink.put({"n": 2})

    assert (sink.written, sink.failed) == (0, 2)
    assert heard.messages == ["`on_record` raised `RuntimeError`, the record is lost"]
