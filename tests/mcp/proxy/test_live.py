"""
A proxy that runs while its policy changes, or stops every call.
"""

from collections.abc import Callable

import pytest

from guardrails.mcp.answers import ENVELOPE
from tests.tables import table

from .test_tap import Connection, policy, was_refused


__all__ = ["policy"]


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.policy.policy.Policy.due_s", property(lambda _: 0.0, lambda _, due_s: None))


def test_a_proxy_takes_a_changed_policy_at_the_next_call(policy: Callable[[str], str]) -> None:
    one = Connection(policy=policy("tools: [{match: echo, held: not yet}]"))
    assert was_refused(one.call("echo", {"n": 1}))
    policy("tools: []")
    assert not was_refused(one.call("echo", {"n": 1}))
    policy("mode: observe\ntools: [{match: echo, held: not yet}]")
    assert not was_refused(one.call("echo", {"n": 2}))
    policy("tools: [{match: echo, held: [}]")
    assert not was_refused(one.call("echo", {"n": 3}))


@table("said", ["", "mode: observe\n"])
def test_a_proxy_refuses_every_call_while_its_policy_stops_them(policy: Callable[[str], str], said: str) -> None:
    one = Connection(policy=policy(said))
    assert not was_refused(one.call("echo", {"n": 1}))
    policy(f"{said}stop: the key leaked")
    refused = one.call("echo", {"n": 2})
    assert was_refused(refused)
    assert refused["_meta"][ENVELOPE]["code"] == "deny_all.on"
    policy(said)
    assert not was_refused(one.call("echo", {"n": 2}))
