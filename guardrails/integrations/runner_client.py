"""
The openai client as the SDK's tool runner sees it, with a `Watch` between the two.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from .runner_watch import Watch


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
        Where the runner finds `create`.
        """
        return self

    def create(self, **request: Any) -> Any:
        """
        Send *request* as the watch has it.
        """
        made = self._client.responses.create(**self._watch.asked(request))
        return WatchedStream(made, self._watch) if request.get("stream") else self._watch.answered(made)


class AsyncWatchedClient(WatchedClient):
    """
    The same for an asynchronous client.
    """

    async def create(self, **request: Any) -> Any:
        """
        Send *request* as the watch has it.
        """
        made = await self._client.responses.create(**self._watch.asked(request))
        return AsyncWatchedStream(made, self._watch) if request.get("stream") else self._watch.answered(made)


class WatchedStream:
    """
    The events of a response, its items and its end as the watch has them.
    """

    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        with charged(self._watch):
            for event in self._stream:
                yield seen(event, self._watch)


class AsyncWatchedStream(WatchedStream):
    """
    The same for an asynchronous stream.
    """

    async def __aiter__(self) -> AsyncIterator[Any]:
        with charged(self._watch):
            async for event in self._stream:
                yield seen(event, self._watch)


@contextmanager
def charged(watch: Watch) -> Iterator[None]:
    """
    Tell *watch* of a stream that breaks off.
    """
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException:
        watch.broken()
        raise


def seen(event: Any, watch: Watch) -> Any:
    """
    *event* as *watch* has it.
    """
    if event.type in ("response.completed", "response.incomplete", "response.failed"):
        return event.model_copy(update={"response": watch.answered(event.response)})
    if event.type in ("response.output_item.added", "response.output_item.done"):
        whole = event.type == "response.output_item.done"
        return event.model_copy(update={"item": watch.item(event.item, event.output_index, whole=whole)})
    return event
