"""
One kept conversation: a list of its messages that only grows, each on the disk before the list has it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, SupportsIndex

from .file import ConversationError, File
from .items import parsed, text_of


if TYPE_CHECKING:
    from guardrails.session.session import Session

    from .repair import Repaired

Wire = Literal["chat", "responses"]


class Conversation(list[dict[str, Any]]):
    """
    The messages of a conversation as they were sent and received, in their order; made by `Conversations`.

    `append` and `extend` write before they return, and `extend` adds all items or none. So a killed process loses no
    message that the list had. Messages stay as they were said: each method that would change them raises
    ConversationError. To be changed by one thread of one process: `append` refuses what another has gone on with.
    """

    def __init__(
        self, file: File, row: int, name: str, wire: Wire, settings: Mapping[str, Any], clock: Callable[[], float]
    ) -> None:
        self.id = name
        self.wire: Wire = wire
        self.settings = dict(settings)
        """What its maker kept beside it: model, policy, and so on."""
        self.watch: Callable[[dict[str, Any]], object] | None = None
        """Told of each message once it is kept."""
        self._file = file
        self._row = row
        self._clock = clock
        super().__init__(map(parsed, self.texts()))

    def texts(self) -> list[str]:
        """
        The messages as the file has them: the JSON text that was kept, unchanged.
        """
        rows = self._file.read("SELECT item FROM messages WHERE conversation = ? ORDER BY n", self._row)
        return [text for (text,) in rows]

    def append(self, item: Any) -> None:
        """
        Keep *item*: a mapping, JSON text (kept as it is), or an object of the openai client.

        Raises ConversationError if it is no JSON object, or another process went on with the conversation, StoreError
        if it cannot be written.
        """
        self.extend([item])

    def extend(self, items: Iterable[Any]) -> None:
        """
        Keep *items* in one transaction. Raises as `append` does, and keeps none then.
        """
        texts = [text_of(item) for item in items]
        if not texts:
            return
        self._file.append(self._row, len(self), round(self._clock() * 1000), texts)
        kept = [parsed(text) for text in texts]
        super().extend(kept)
        if self.watch is not None:
            for item in kept:
                self.watch(item)

    def insert(self, index: SupportsIndex, item: Any) -> None:
        """
        Keep *item* if *index* is the end.
        """
        if int(index) < len(self):
            self._refuse()
        self.append(item)

    def __iadd__(self, items: Iterable[Any]) -> Self:  # type: ignore[override,misc]
        self.extend(items)
        return self

    def repair(self, session: "Session") -> "list[Repaired]":
        """
        Answer the calls of a turn that a killed process left half finished; *session* is the one of this conversation.

        To be called once a conversation was resumed, before it goes on. See `repair.repair`.
        """
        from guardrails.integrations.openai.loop import WIRES

        from .repair import repair

        return repair(self, WIRES[self.wire], session)

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, {len(self)} messages)"

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ConversationError("what was said stays: messages of a kept conversation are appended only")

    __setitem__ = __delitem__ = __imul__ = pop = remove = clear = sort = reverse = _refuse
