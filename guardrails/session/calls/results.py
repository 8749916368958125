"""
Earlier results, kept to be given back, and the whole of those that were cut; bounded in bytes, the oldest go first.
"""

import os
import threading
import weakref

from collections import OrderedDict
from collections.abc import Callable
from typing import Annotated, Any, Final

import orjson

from xxhash import xxh3_64_intdigest

from guardrails.core.engine.chain import Chain
from guardrails.core.engine.plan import Plan, Rule
from guardrails.core.envelope.content import Cut
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.access.tool_filter import ToolFilter
from guardrails.core.guards.results.truncate import Truncate
from guardrails.core.records.digest import Earlier
from guardrails.core.text.collect import Bytes
from guardrails.core.text.leading_json import leading_escaped
from guardrails.core.text.truncation import LIMIT, MIN_LIMIT, render, shown_of
from guardrails.core.values.bounds import Ge
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import Success


MAX_BYTES: Final = 4 * 2**20
"""Of one policy's sessions together; a larger cache costs each call more than it gives back (memory that is not warm)."""
MAX_WHOLES: Final = 64 * 2**20
"""Of the results that were cut, whole, of one policy's sessions together; each has a bound of its own (`truncate.keep`)."""
OVERHEAD: Final = 450
"""Bytes that an entry costs beside its texts, as tracemalloc counts them."""


NAME: Final = "read_result"
RULE: Final = Rule(match=NAME, declared={"read_only": True, "idempotent": True, "repeats": "allow"})
"""Polling: whoever has lost a page by a compaction of the conversation may have it again."""
_HANDLE: Final = pattern(r"[0-9a-f]{16}")
_SECRET: Final = int.from_bytes(os.urandom(8))
FRAME: Final = 120
"""Bytes of a page beside its text, and some to spare."""


class Results:
    """
    A cache of results by session and signature. A result that falls out is only told of, not given back.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._kept: OrderedDict[tuple[str, int], Earlier] = OrderedDict()
        self._bytes = 0
        self._max = max_bytes
        self._lock = threading.RLock()
        _caches.add(self)

    def keep(self, session: str, sig: int, earlier: Earlier) -> None:
        """
        Remember the result of a call; *earlier* is the cache's from here on, its texts take no more than they say
        (`jsonable.exact`).
        """
        key, kept, most = (session, sig), self._kept, self._max
        size = len(earlier.payload) + len(earlier.arguments) + OVERHEAD
        with self._lock:
            total = self._bytes
            if key in kept:
                total -= _size(kept.pop(key))
            if size <= most:
                kept[key] = earlier
                total += size
                while total > most:
                    _, oldest = kept.popitem(False)  # noqa: FBT003
                    # `_size`, in place: where the cache is full, each call comes here.
                    total -= len(oldest.payload) + len(oldest.arguments) + OVERHEAD
            self._bytes = total

    def find(self, session: str, sig: int | None) -> Earlier | None:
        """
        Returns the result of the latest call of that signature.
        """
        if sig is None:
            return None
        key = (session, sig)
        with self._lock:
            earlier = self._kept.get(key)
            if earlier is not None:
                self._kept.move_to_end(key)
        return earlier

    def keep_once(self, session: str, sig: int, earlier: Earlier, max_bytes: int) -> None:
        """
        The same, but what is kept already makes no other go, and those of *session* stay within *max_bytes*.
        """
        with self._lock:
            if self.find(session, sig) is None:
                self.trim(session, max_bytes - len(earlier.payload))
                self.keep(session, sig, earlier)

    def trim(self, session: str, max_bytes: int) -> None:
        """
        Let go of those of *session* that were not used for longest, until it has at most *max_bytes*.
        """
        with self._lock:
            own = [key for key in self._kept if key[0] == session]
            size = sum(_size(self._kept[key]) for key in own)
            for key in own:
                if size > max_bytes:
                    gone = _size(self._kept.pop(key))
                    size -= gone
                    self._bytes -= gone

    @property
    def size(self) -> int:
        """
        Bytes that are kept.
        """
        return self._bytes

    def _begin_in_child(self) -> None:
        self._lock = threading.RLock()
        # The fork may have come between a change and its count.
        self._bytes = sum(map(_size, self._kept.values()))


_caches: "weakref.WeakSet[Results]" = weakref.WeakSet()


def _after_fork() -> None:
    # A lock that another thread of the parent held would never be released in the child.
    for results in _caches:
        results._begin_in_child()  # noqa: SLF001


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _size(earlier: Earlier) -> int:
    return len(earlier.payload) + len(earlier.arguments) + OVERHEAD


class Kept:
    """
    The whole results of a session, which has the bytes in *wholes* with its *family*: its parent and its children.
    """

    __slots__ = ("family", "offered", "wholes")

    def __init__(self, wholes: Results, family: str) -> None:
        self.wholes = wholes
        self.family = family
        self.offered = False
        """Its caller has taken the tool `read_result`."""

    def reads(self, chain: Chain) -> bool:
        """
        Returns whether the model may call `read_result`, as far as *chain* knows its tools and filters them.
        """
        plan = chain.plan(NAME) if self.offered else None
        if plan is None or plan.known is False:
            return False
        filters = (guard for guard in plan.guards if isinstance(guard, ToolFilter) and guard.mode == "enforce")
        return not any(one.checks_fresh(NAME, chain.known) for one in filters)

    def still(self, cut: Cut | None) -> Cut | None:
        """
        Returns *cut* as it may be said once more: without a handle whose whole has gone since.
        """
        if cut is None or cut.handle is None or self.find(cut.handle) is not None:
            return cut
        return cut._replace(handle=None)

    def find(self, handle: object) -> Earlier | None:
        """
        Returns the whole that is kept under *handle*.
        """
        known = isinstance(handle, str) and _HANDLE.fullmatch(handle)
        return self.wholes.find(self.family, int(known[0], 16)) if known else None

    def room(self, result: object, plan: Plan) -> int:
        """
        Returns bytes up to which *result* is read. A result that is in memory already is read as far as it can be kept.
        """
        value = result.value if isinstance(result, Success) else result
        return max(plan.max_bytes, _most(plan)) if isinstance(value, Bytes) else plan.max_bytes

    def tell(self, envelope: Envelope, plan: Plan) -> None:
        """
        Keep the whole of the result that was cut in *envelope*, which says how to read on. Without room for it nothing
        is kept.
        """
        most, cut = _most(plan), envelope.rendered
        whole = render(envelope.value, most) if most >= MIN_LIMIT else None
        if cut is None or cut.complete or whole is None or not whole.complete:
            return
        text = whole.payload if whole.text is None else whole.text.encode()
        # The same text has one handle, and nobody can guess it.
        handle = xxh3_64_intdigest(text, _SECRET)
        self.wholes.keep_once(self.family, handle, Earlier(NAME, b"", text, ok=True), most)
        envelope.keep(f"{handle:016x}", whole.size, shown_of(cut))


def reader(kept: Kept, chain: Callable[[], Chain]) -> Callable[..., Envelope]:
    """
    Returns the tool `read_result` of the session that has *kept* and goes by *chain*, offered from now on.
    """
    kept.offered = True

    def read_result(
        handle: str, offset: Annotated[int, Ge(0)] = 0, limit: Annotated[int, Ge(1)] | None = None
    ) -> Envelope:
        """
        Read on in a result that was cut.

        Args:
            handle: the `handle` of that result
            offset: the character of its whole text to begin with
            limit: characters at most; as many as there is room for, if it is left out
        """
        found = kept.find(handle)
        if found is None:
            return Envelope.error(
                "not_found",
                f"no result is kept under the handle `{str(handle)[:40]}`, or no longer",
                retryable=False,
                next_action_hint="Make the call that gave it again, with a narrower request.",
            )
        room = min(chain().plan(NAME).max_bytes, LIMIT) - FRAME
        return page(found.payload.decode(), offset, limit, room)

    return read_result


def page(whole: str, offset: int, limit: int | None, room: int) -> Envelope:
    """
    Returns the text of *whole* from the character *offset* on: at most *limit* characters, and *room* bytes as JSON.
    """
    total = len(whole)
    # Where no guard checks arguments, they come as the model wrote them.
    if type(offset) is not int or not 0 <= offset < total:
        return Envelope.error("validation", f"the result has {total} characters, so that none is at offset {offset}")
    if limit is not None and (type(limit) is not int or limit < 1):
        return Envelope.error("validation", f"`limit` is a number of characters, at least 1, and not {limit}")
    text = orjson.loads(b'"%b"' % leading_escaped(whole[offset : offset + min(limit or room, room)], room))
    after = offset + len(text)
    value: dict[str, Any] = {"text": text, "offset": offset, "total_chars": total}
    if after == total:
        return Envelope.success(value, is_complete=True, next_action_hint="This is its end.")
    value["next_offset"] = after
    return Envelope.success(value, is_complete=False, next_action_hint=f"Read on with offset {after}.")


def _most(plan: Plan) -> int:
    return next((guard.keep for guard in plan.guards if isinstance(guard, Truncate)), 0)
