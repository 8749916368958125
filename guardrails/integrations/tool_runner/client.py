"""
The openai client as the SDK's tool runner sees it, with a `Watch` between the two.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from guardrails.integrations.openai.heard import Heard, raw
from guardrails.integrations.openai.reading import Unreadable, check_error, checked_object, text_in

from .watch import Watch


class WatchedClient:
    """
    *client*, whose `responses.create` the watch sees; everything else is the client's own.
    """

    def __init__(self, client: Any, watch: Watch) -> None:
        self._client = client
        self._watch = watch
        watch.endpoint = str(getattr(client, "base_url", "") or "") or None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def with_options(self, **options: Any) -> "WatchedClient":
        """
        The client with other options, watched too.
        """
        return type(self)(self._client.with_options(**options), self._watch)

    @property
    def responses(self) -> "WatchedClient":
        """
        The place where the runner finds `create`.
        """
        return self

    def create(self, **request: Any) -> Any:
        """
        Send *request* as the watch has it.
        """
        create, streamed = self._creating(request)
        sent = self._watch.asked(request)
        with self._watch.asking():
            heard = self._heard(create(**sent))
        return WatchedStream(heard, self._watch) if streamed else answered(heard, self._watch)

    def _creating(self, request: Mapping[str, Any]) -> tuple[Callable[..., Any], bool]:
        create, streamed = self._client.responses.create, bool(request.get("stream"))
        return (create if streamed else raw(create)), streamed

    def _heard(self, made: Any) -> Heard:
        return Heard(made, url=self._watch.endpoint, secret=getattr(self._client, "api_key", None))


class AsyncWatchedClient(WatchedClient):
    """
    The same for an asynchronous client.
    """

    async def create(self, **request: Any) -> Any:
        """
        Send *request* as the watch has it.
        """
        create, streamed = self._creating(request)
        sent = self._watch.asked(request)
        with self._watch.asking():
            heard = self._heard(await create(**sent))
        return AsyncWatchedStream(heard, self._watch) if streamed else answered(heard, self._watch)


class WatchedStream:
    """
    The events of a response, its items and its end as the watch has them.
    """

    def __init__(self, heard: Heard, watch: Watch) -> None:
        self._heard = heard
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._heard.made, name)

    def __iter__(self) -> Iterator[Any]:
        with charged(self._heard, self._watch):
            for event in self._heard.made:
                yield seen(event, self._watch)
            self._watch.check_ended()


class AsyncWatchedStream(WatchedStream):
    """
    The same for an asynchronous stream.
    """

    async def __aiter__(self) -> AsyncIterator[Any]:
        with charged(self._heard, self._watch):
            async for event in self._heard.made:
                yield seen(event, self._watch)
            self._watch.check_ended()


@contextmanager
def charged(heard: Heard, watch: Watch) -> Iterator[None]:
    """
    Tell *watch* of a reply that breaks off, or is no response.
    """
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:
        told = heard.told(error)
        watch.broken(told)
        if told is error:
            raise
        raise told from error


def answered(heard: Heard, watch: Watch) -> Any:
    """
    The response that was *heard* as *watch* has it.
    """
    with charged(heard, watch):
        return watch.answered(heard.whole())


def seen(event: Any, watch: Watch) -> Any:
    """
    *event* as *watch* has it.
    """
    kind = text_in(checked_object(event, "an event"), "type")
    if not kind:
        check_error(event)
        raise Unreadable("an event has no `type`")
    if kind in ("response.completed", "response.incomplete", "response.failed"):
        return event.model_copy(update={"response": watch.answered(event.response)})
    if kind in ("response.output_item.added", "response.output_item.done"):
        whole = kind == "response.output_item.done"
        return event.model_copy(update={"item": watch.item(event.item, event.output_index, whole=whole)})
    return event
