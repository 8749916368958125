"""
Sessions in a server of Redis or Valkey, shared by processes of many machines.

The server compares and writes bytes and adds up numbers, and knows nothing of sessions or guards. All keys of a store begin with its
namespace in braces, so that a cluster keeps them in one slot, and those of other namespaces in others:

    {ns}:store  what made it, and the version of this layout
    {ns}:keys   of all states
    {ns}:h:KEY  a state: `v`, its version; `at`, when it was changed last, in milliseconds by the server's clock; `s`, its bytes, of a
                scope without its amounts; and of a scope each amount by its name
"""

import os
import re
import time

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha1
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import quote

import orjson

from guardrails.core.packing import pack
from guardrails.core.scopes import SharedState
from guardrails.core.state import SessionState
from guardrails.core.values.errors import StateUnreadable, StoreError, needs
from guardrails.core.values.names import SCOPES

from . import Stored
from .persistence import BATCH, FORKED, LIVE, PersistentStore, Slot, explained, key_of, name_of, unpacked
from .places import shown_place


T = TypeVar("T")
FORMAT: Final = b"toolcall-guardrails 2"
_URLS: Final = "redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, or unix:///PATH"
_URL: Final = re.compile(r"(rediss?://[^/?#]*(/[0-9]{0,5})?|unix://[^?#]*)(\?.*)?")

COMMIT: Final = """
local version = ARGV[1]
local moves = cjson.decode(ARGV[2])
local function answer(done)
  local answers = {done}
  for i = 2, #KEYS do
    answers[i] = (done == 0 or moves[i - 1][2]) and redis.call('HGETALL', KEYS[i]) or {}
  end
  return answers
end
if version == '' then return answer(0) end
if redis.call('HGET', KEYS[2], 'v') == version then return answer(1) end
local writes = {}
for i = 2, #KEYS do
  local key, old, adds, seen, below = KEYS[i], unpack(moves[i - 1])
  if redis.call('HGET', key, 'v') ~= old then return answer(0) end
  local amounts, fields = {}, adds and redis.call('HGETALL', key) or {}
  for j = 1, #fields, 2 do amounts[fields[j]] = fields[j + 1] end
  for name, value in pairs(seen or {}) do
    if (amounts[name] or '0') ~= value then return answer(0) end
  end
  for _, add in ipairs(adds or {}) do
    local name, more, least = unpack(add)
    local now = tonumber(amounts[name] or 0)
    if least and now < tonumber(least) then
      writes[#writes + 1] = {'HSET', key, name, least}
      now = tonumber(least)
    end
    if more ~= '0' then writes[#writes + 1] = {'HINCRBY', key, name, more} end
    amounts[name] = now + tonumber(more)
  end
  for _, sum in ipairs(below or {}) do
    local total = 0
    for j = 2, #sum do total = total + tonumber(amounts[sum[j]] or 0) end
    if total >= tonumber(sum[1]) then return answer(0) end
  end
end
local time = redis.call('TIME')
local at = string.format('%d%03d', time[1], math.floor(time[2] / 1000))
for i = 2, #KEYS do
  local key, new = KEYS[i], ARGV[i + 1]
  local old, adds = unpack(moves[i - 1])
  if new ~= '' then redis.call('HSET', key, 'v', version, 's', new) end
  if new ~= '' or adds and #adds > 0 then redis.call('HSET', key, 'at', at) end
  if not old then redis.call('ZADD', KEYS[1], 0, string.sub(key, #KEYS[1] - 1)) end
end
for _, write in ipairs(writes) do redis.call(unpack(write)) end
return answer(1)
"""
"""
Do what a step did, all or nothing. The answer is 1 if it is done, or 0 if it is to be done again, since others were there meanwhile; then
all that there is of each key, if it was not done or the key is of a scope.

KEYS: keys, and the state of each. ARGV: the new version (nothing: only look), by which the first state tells that it was done; as JSON of
each state the version that it was or false, and of a scope what is added (name, amount, the least that it is before, or false), the amounts
that nobody may have changed, and sums that stay below a limit (limit, names); then of each state its bytes (nothing: as they are).
"""

_DROP: Final = """
local now, dropped = redis.call('TIME')[1] * 1000, 0
for i = 2, #KEYS do
  if now - tonumber(redis.call('HGET', KEYS[i], 'at') or 0) > tonumber(ARGV[1]) then
    dropped = dropped + redis.call('DEL', KEYS[i])
    redis.call('ZREM', KEYS[1], string.sub(KEYS[i], #KEYS[1] - 1))
  end
end
return dropped
"""
"""KEYS: keys, and states. ARGV: the milliseconds that those to be dropped were idle at least. The answer is how many they were."""
_ANY: Final = b"-1e15"
_LOOK: Final = (b"", b"[]")

_TAKE_OVER: Final = """
local stem = string.sub(KEYS[1], 1, -5)
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local state = redis.call('GET', stem .. 's:' .. name)
  if state then
    redis.call('HSET', stem .. 'h:' .. name, 'v', '', 'at', string.sub(state, 17, 29), 's', string.sub(state, 30))
    redis.call('DEL', stem .. 's:' .. name)
  end
end
"""
"""
The states of 0.2.0 were strings: 16 bytes of a version, 13 digits of a time, and the packed state. A scope had its amounts in it, from which
they come into the hash by the next step.
"""


class RedisStore(PersistentStore):
    """
    States in the server at *url* (`redis://HOST:PORT/DATABASE`, `rediss://` with TLS, `unix:///PATH`) or of a `redis.Redis` or
    `redis.RedisCluster`, under the keys of *namespace*. Safe in any number of threads, processes and machines.

    One `update` runs the step here, on the states as this process had them last or reads them, and has the server keep what it
    did: of a session only if nobody changed it meanwhile, of a scope what is to be added to its amounts, if the guards would
    have said the same by those that are there now. Otherwise the step is run again. No process ever holds a lock there. It
    takes *timeout* seconds at most, then raises StoreError, as if the server cannot be reached or refuses.

    Raises StoreError if the server could drop states for lack of memory, MissingExtra if the package `redis` is missing.
    """

    _resends = True
    _kinds: ClassVar[Mapping[str, str]] = {
        "replica": "ReadOnly|MasterDown",
        "login": "Authentication|WRONGPASS|DENIED",
        "forbidden": "NoPermission|ACL failure|user executing the script|no permissions",
        "full": "OutOfMemory",
        "disk": "MISCONF",
        "foreign": "WRONGTYPE",
        "away": "ConnectionError|TimeoutError|ClusterDown|TryAgain|MovedError|AskError|BUSY|NOREPLICAS|UNBLOCKED",
    }

    def __init__(self, url: Any, *, namespace: str = "guardrails", timeout: float = 5.0, live: int = LIVE) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.:/%-]{1,200}", namespace):
            raise StoreError(f"`{namespace}` is no namespace: use 1 to 200 letters, digits and `_.:-/%`")
        with needs("redis", "a store in Redis"):
            import redis.exceptions
        self._errors = redis.exceptions.RedisError
        self.namespace = namespace
        self._stem = f"{{{namespace}}}:".encode()
        self._given = not isinstance(url, str)
        self._client, place = _client(url, timeout)
        super().__init__(place, timeout, live)
        self._ask(self._check)

    def tenant(self, id: str) -> "RedisStore":
        """
        Returns the store of the sessions and scopes of one tenant, by the same connections. Keep it for all of its sessions.

        Its keys have a hash tag of their own, so that a cluster spreads tenants.
        """
        namespace = f"{self.namespace}/{quote(id, safe='')}"
        return RedisStore(self._client, namespace=namespace, timeout=self._timeout, live=self._most)

    def _check(self, slot: Slot) -> None:
        """
        See that the server is fit for a store, and that the namespace is one. Raises StoreError.
        """
        name = self._stem + b"store"
        made_by = self._client.execute_command("GET", name, NEVER_DECODE=True)
        if made_by == b"toolcall-guardrails 1":
            self._run(_TAKE_OVER, (), (), slot)
        elif made_by not in (None, FORMAT):
            raise StoreError(
                f"the store `{self.place}` holds under this namespace what this version cannot read "
                f"(`{made_by.decode('utf-8', 'replace'):.80}`): use another `namespace`, or the version that wrote it"
            )
        self._client.set(name, FORMAT)
        answer = self._client.info()
        # A cluster answers by node.
        for info in [answer] if "maxmemory_policy" in answer else answer.values():
            evicts = str(info["maxmemory_policy"])
            if evicts.startswith("allkeys-"):
                raise StoreError(
                    f"the store `{self.place}` may drop states for lack of memory (maxmemory-policy `{evicts}`): set it to `noeviction`"
                )
            if info["role"] == "slave" and not info["slave_read_only"]:
                raise StoreError(
                    f"the store `{self.place}` is a replica whose writes are lost at its next sync: give the address of the primary"
                )

    def _run(self, script: str, keys: Sequence[str], arguments: Sequence[bytes], _: Slot) -> Any:
        """
        Returns the answer of *script* about *keys*.
        """
        names = [self._stem + b"keys", *[self._stem + b"h:" + name_of(key) for key in keys]]
        # Never as an int: hiredis 3.5 packs one by code that a signal's exception makes crash.
        ask, rest = self._client.execute_command, (b"%d" % len(names), *names, *arguments)
        try:
            return ask("EVALSHA", sha_of(script), *rest, NEVER_DECODE=True)
        except self._errors as error:
            if type(error).__name__ != "NoScriptError":
                raise
            return ask("EVAL", script, *rest, NEVER_DECODE=True)

    def update(self, keys: Sequence[str], step: Callable[[list[SessionState]], T]) -> T:
        """
        See `Store.update`. Nothing is kept if *step* raises, or is interrupted.
        """
        return self._in_turn(partial(self._change, keys, step))

    def _change(self, keys: Sequence[str], step: Callable[[list[SessionState]], T], slot: Slot) -> T:
        states = [self._live.pop(key, None) for key in keys]
        fresh = None in states
        if fresh:
            states = self._states(keys, self._tried(partial(self._run, COMMIT, keys, _LOOK), slot))
        while True:
            result = step([one.state for one in states])
            if slot not in self._slots:
                raise StoreError(FORKED.format(self.place))
            commit = _commit(states, fresh=fresh)
            if not commit:
                break
            slot.unsure = True
            answers = self._tried(partial(self._run, COMMIT, keys, commit), slot)
            slot.unsure = False
            if answers[0]:
                for one, answer in zip(states, answers[1:], strict=True):
                    one.settle(commit[0].decode(), answer)
                break
            if time.monotonic() > slot.until:
                raise explained(TimeoutError("it was changed all the time"), "busy", self.place, self._timeout)
            states, fresh = self._states(keys, answers), True
        self._keep(keys, states)
        return result

    def _states(self, keys: Sequence[str], answers: Sequence[Any]) -> "list[_Row]":
        return [_Row(key, _fields(one), self.place) for key, one in zip(keys, answers[1:], strict=True)]

    def _command(self, *parts: Any) -> Any:
        return self._ask(lambda slot: self._client.execute_command(*parts, NEVER_DECODE=True))

    def __len__(self) -> int:
        return int(self._command("ZCARD", self._stem + b"keys"))

    def entries(self, prefix: str = "") -> Iterator[Stored]:
        """
        See `Listed.entries`. They come in the order of their keys.
        """
        for keys in self._pages(prefix):
            yield from self._stored(keys)

    def _stored(self, keys: Sequence[str]) -> Iterator[Stored]:
        answers = self._ask(partial(self._run, COMMIT, keys, _LOOK))
        for key, fields in zip(keys, map(_fields, answers[1:]), strict=True):
            packed = fields.get(b"s")
            with suppress(StateUnreadable):
                if packed is not None and key.startswith(SCOPES):
                    packed = pack(_Row(key, fields, self.place).state)
            if packed is not None:
                yield Stored(key, packed, int(fields.get(b"at", 0)))

    def _pages(self, prefix: str) -> Iterator[list[str]]:
        """
        Returns the keys that begin with *prefix*, some at a time, in their order.
        """
        begins, keys = name_of(prefix), self._stem + b"keys"
        # No key begins with it: it is in no UTF-8.
        after, ends = b"[" + begins, b"(" + begins + b"\xff"
        while names := self._command("ZRANGEBYLEX", keys, after, ends, b"LIMIT", b"0", b"%d" % BATCH):
            yield [*map(key_of, names)]
            after = b"(" + names[-1]

    def forget(self, key: str) -> None:
        """
        See `Store.forget`.
        """
        self._ask(partial(self._run, _DROP, [key], [_ANY]))
        self._live.pop(key, None)

    def _drop(self, idle_ms: int, prefix: str, *, scopes: bool) -> Iterator[int]:
        for keys in self._pages(prefix):
            chosen = [key for key in keys if scopes or not key.startswith(SCOPES)]
            yield int(self._ask(partial(self._run, _DROP, chosen, [b"%d" % idle_ms])))

    def clock(self) -> float:
        """
        Returns seconds since 1970 by the server's clock: one time for all who use it.

        For `policy.session(..., clock=store.clock)`, if the clocks of machines may differ.
        """
        seconds, micros = self._command("TIME")
        return int(seconds) + int(micros) / 1e6

    def close(self) -> None:
        """
        Close the connections, unless they are of a client that was given; the next use makes new ones.
        """
        super().close()
        if not self._given:
            self._client.close()


class _Row:
    """
    A state as the server has it by these *fields*; of a scope, amounts and what it is beside them.
    """

    __slots__ = ("amounts", "new", "packed", "state", "version")

    def __init__(self, key: str, fields: Mapping[bytes, bytes], place: str) -> None:
        self.version = fields[b"v"].decode() if b"v" in fields else False
        self.packed = fields.get(b"s", b"")
        self.new = b""
        """Its bytes, if a step has changed them."""
        self.state = unpacked(key, fields.get(b"s"), place)
        self.amounts = _amounts(fields)
        if key.startswith(SCOPES):
            self.state = SharedState.of(self.state, self.amounts)

    def moves(self) -> tuple[Any, ...]:
        """
        Returns what a commit says of its amounts, once it has its new bytes.
        """
        state = self.state
        new = pack(state.rest() if isinstance(state, SharedState) else state)
        self.new = b"" if new == self.packed else new
        if not isinstance(state, SharedState):
            return (False,)
        before, after, edges = self.amounts, state.amounts(), state.edges()
        floors = {edge.names[0]: edge.floor for edge in edges or () if edge.floor is not None}
        floors["now_ms"] = state.now_ms
        adds, seen = {}, set() if edges is not None and not state.objected else set(before)
        for name in before.keys() | after:
            old, now, least = before.get(name, 0), after.get(name, 0), floors.get(name)
            if now != old:
                adds[name] = str(now - (old if least is None else max(old, least))), least is not None and str(least)
        below = []
        for edge in edges or ():
            if sum([after.get(name, 0) for name in edge.names]) < edge.most:
                below.append((str(edge.most), *edge.names))
            elif not adds.keys().isdisjoint(edge.names):
                # Who takes nothing finds the same beyond a limit, whatever others add.
                seen.update(edge.names)
        # Who only looks, without the chain of a scope, looks at what is there now.
        state.chain, state.objected = None, False
        as_seen = {name: str(before.get(name, 0)) for name in seen - {"n", "now_ms"}}
        return [(name, *add) for name, add in adds.items()], as_seen, below

    def settle(self, version: str, answer: Sequence[bytes]) -> None:
        """
        Have what the server has by a commit of this *version*, which gave this *answer*.
        """
        state = self.state
        if self.new:
            self.packed, self.version = self.new, version
        if isinstance(state, SharedState):
            n, self.amounts = state.n, _amounts(_fields(answer))
            state.have(self.amounts)
            for place in state.places:
                # The step's place in the records is by its true number.
                place[2] += state.n - n
            state.places = []


def _fields(answer: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(answer[::2], answer[1::2], strict=True))


def _amounts(fields: Mapping[bytes, bytes]) -> dict[str, int]:
    return {name.decode(): int(value) for name, value in fields.items() if name not in (b"v", b"s", b"at")}


def _commit(states: Sequence[_Row], *, fresh: bool) -> list[bytes]:
    """
    Returns what the server is asked to do; nothing if it would change nothing, and the states are *fresh*: as it has them now.
    """
    moves = [(one.version, *one.moves()) for one in states]
    if any(one.new for one in states) or any(adds for _, adds, *_ in moves):
        # By its version the first one tells that it was done.
        states[0].new = states[0].new or states[0].packed
    elif fresh:
        return []
    return [os.urandom(8).hex().encode(), orjson.dumps(moves), *(one.new for one in states)]


@cache
def sha_of(script: str) -> str:
    """
    Returns the name by which the server knows a script once it has run it.
    """
    return sha1(script.encode(), usedforsecurity=False).hexdigest()


def _client(given: Any, timeout_s: float) -> tuple[Any, str]:
    """
    Returns a client of the server that *given* names, and its name without secrets.
    """
    with needs("redis", "a store in Redis"):
        import redis

        from redis.backoff import NoBackoff
        from redis.retry import Retry
    if not isinstance(given, str):
        if not isinstance(given, (redis.Redis, redis.RedisCluster)):
            raise StoreError(f"a store in Redis needs a URL ({_URLS}), a `redis.Redis` or a `redis.RedisCluster`")
        return given, "the client's server"
    limit = max(timeout_s / 2.5, 0.001)
    limits: dict[str, Any] = {"socket_connect_timeout": limit, "socket_timeout": limit}
    try:
        if not _URL.fullmatch(given):
            raise ValueError
        client = redis.Redis.from_url(given, retry=Retry(NoBackoff(), 0), **limits)
        client.connection_pool.make_connection()
    except (TypeError, ValueError):
        # What was raised may quote a part of the password.
        raise StoreError(
            f"this is no URL of a server of Redis: use {_URLS}, with options of `redis.from_url`. In a password write `/` as %2F, "
            "`@` as %40, `:` as %3A, `#` as %23, `?` as %3F"
        ) from None
    return client, shown_place(given)
