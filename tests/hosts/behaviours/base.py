"""
What the behaviours are told with: a host, tools that note what ran, and models.
"""

import json

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from guardrails import Policy, Session
from tests.hosts.driver import Asked, Call, Driver, Ran, Say, Script
from tests.openai_api import problems


def searching(ran: list[str], result: str = "nothing found") -> Callable[[str], str]:
    """
    The tool `search`, which notes in *ran* what it is asked.
    """

    def search(query: str) -> str:
        """Search the web for a query."""
        ran.append(query)
        return result

    return search


def asearching(ran: list[str], result: str = "nothing found") -> Callable[[str], Any]:
    """
    The same, asynchronous.
    """

    async def search(query: str) -> str:
        """Search the web for a query."""
        ran.append(query)
        return result

    return search


def search(query: str, id: str | None = None) -> Call:
    """
    A call of it.
    """
    return Call("search", {"query": query}, id)


def stuck(asked: Asked) -> Say:
    """
    A model that makes the same call until its tools are off.
    """
    return Say("I know nothing of it.") if asked.off else Say(calls=(search("x"),))


def roaming(asked: Asked) -> Say:
    """
    A model that makes another call each time until its tools are off.
    """
    return Say("I know nothing of it.") if asked.off else Say(calls=(search(f"q{asked.n}"),))


def in_turn(*said: Say) -> Script:
    """
    A model that says one after the other, and then that it is done.
    """
    return lambda asked: said[asked.n] if asked.n < len(said) else Say("Done.")


def envelope(text: str) -> Mapping[str, Any]:
    """
    The envelope that a model reads. Behind a hook its sentence stands before that of a refusal; pydantic-ai puts a failure
    into an `error`.
    """
    sentence, _, rest = text.partition("\n")
    read = json.loads(text if text[:1] == "{" else rest)
    assert isinstance(read, dict), text
    if read.keys() == {"error"}:
        return envelope(read["error"])
    if text[:1] != "{":
        assert sentence in (read.get("message"), read.get("limit_message"), read.get("user_facing_hint")), text
    return read


def statuses(ran: Ran) -> list[str]:
    """
    What each result that the model could read says of its call.
    """
    return [envelope(result)["status"] for result in ran.results]


class Behaviours:
    """
    One host in each test, made anew.
    """

    driver: Callable[[], Any]

    @pytest.fixture(autouse=True)
    def _host(self, request: pytest.FixtureRequest) -> None:
        self.host: Driver = type(self).driver()
        reason = self.host.cannot.get(getattr(request.node, "originalname", request.node.name))
        if reason is not None and request.function.__module__.startswith("tests.hosts.behaviours"):
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    def go(
        self,
        guarded: Policy | Session,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Ran:
        """
        A run behind a new adapter of *guarded*. Nothing is raised, and every call in the conversation has a result.
        """
        return self.again(self.host.adapter(guarded, **(options or {})), tools, script, **more)

    def again(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **more: Any) -> Ran:
        """
        The same behind an *adapter* that is there.
        """
        ran = self.host.run(adapter, tools, script, **more)
        if ran.error is not None:
            raise ran.error
        assert ran.unanswered == []
        assert problems(ran.sent) == [], "the API would refuse a request"
        return ran
