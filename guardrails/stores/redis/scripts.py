"""
Scripts that the server runs atomically. They compare and write bytes, and know nothing of sessions or guards.

All keys of a store begin with its namespace in braces, so that a cluster keeps them in one slot:

    {ns}:store    what made it, and the version of this layout
    {ns}:writers  of each connection's writer, the number of its latest commit
    {ns}:keys     of all states
    {ns}:turns    who may go first at a state that many want
    {ns}:line     who waits for that
    {ns}:go:*     what is told to one of those of a state: the writer, the key
    {ns}:s:KEY    a version of 16 bytes (the writer, its commit); when it was changed last, in milliseconds by the server's clock, 13
                  digits; the packed state
"""

from hashlib import sha1
from typing import Final


MARK_BYTES: Final = 16
HEAD_BYTES: Final = 29
FORMAT: Final = b"toolcall-guardrails 1"
KEPT_US: Final = 86_400 * 1_000_000
"""How long a writer is known that commits nothing: a day."""


TURN_MS: Final = 100
"""How long a writer may go first at a state. One that dies meanwhile has the others wait that long, once."""


class Script:
    """
    A script, and the digest by which the server knows it once it has run it.
    """

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.sha = sha1(text.encode(), usedforsecurity=False).hexdigest().encode()


OPEN: Final = Script("""
local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then return {found} end
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
if not found then redis.call('SET', KEYS[1], ARGV[1]) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', 2 * (us - ARGV[2])))
return {found or ARGV[1], string.format('%.0f', us)}
""")
"""KEYS: store, writers. ARGV: format, microseconds that an idle writer is kept. The format, and the time in microseconds."""

_TURNS: Final = f"""
local function time()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end
local function holder(turns, key, now)
  local turn = redis.call('HGET', turns, key)
  local since = turn and now - tonumber(string.sub(turn, 9))
  if since and since >= 0 and since <= {TURN_MS} then return string.sub(turn, 1, 8) end
end
local function give(turns, key, writer, now)
  redis.pcall('HSET', turns, key, writer .. string.format('%.0f', now))
end
-- By pcall, since it comes after what was written, and that is to stay.
local function pass(turns, line, stem, key, now)
  local from = key .. '\\0'
  local first = redis.pcall('ZRANGEBYLEX', line, '[' .. from, '(' .. key .. '\\1', 'LIMIT', 0, 1)[1]
  if not first then return redis.pcall('HDEL', turns, key) end
  local writer = string.sub(first, -8)
  redis.pcall('ZREM', line, first)
  give(turns, key, writer, now)
  local told = stem .. 'go:' .. writer .. key
  redis.pcall('RPUSH', told, redis.pcall('GET', stem .. 's:' .. key) or '')
  redis.pcall('PEXPIRE', told, 10 * {TURN_MS})
end
"""
"""
Who may change a state that many want, each in its turn. No lock: it is over after a moment, and versions alone decide.

{{ns}}:turns has the writer of each such key and since when, {{ns}}:line those that wait: key, number, writer. Who is given the
turn finds the state in {{ns}}:go:WRITER and the key: of another state, that it waited for before, it is told elsewhere.
"""

_MISSED: Final = f"""
local function missed(last, known, now)
  return known > tonumber(last or 0) and known / 2000 > now - {KEPT_US // 1_000}
end
"""
"""Whether a writer's commit *known* is lost. One that is older than a day may be forgotten: nobody can say."""

COMMIT: Final = Script(
    _TURNS
    + _MISSED
    + """
local last = redis.call('ZSCORE', KEYS[1], ARGV[1])
if last and tonumber(last) >= tonumber(ARGV[2]) then return {-1} end
redis.call('ZCARD', KEYS[2])
local now, contended = time(), redis.call('EXISTS', KEYS[3]) == 1
local found, keys, held, other, wanted = {0}, {}, {}, nil, nil
for i = 5, #KEYS do
  local key = string.sub(KEYS[i], ARGV[4])
  keys[i], found[i - 3] = key, 1
  local whose = contended and holder(KEYS[3], key, now)
  if whose == ARGV[1] then held[#held + 1] = key elseif whose then other = other or i end
  if redis.call('GETRANGE', KEYS[i], 0, 15) ~= ARGV[2 * i - 5] then wanted, found[i - 3] = wanted or i, 0 end
end
if #held == 0 and other then
  redis.call('ZADD', KEYS[4], 0, keys[other] .. '\\0' .. string.format('%016.0f', now) .. ARGV[1])
  return {3, other - 5}
end
if wanted then
  for i = 5, #KEYS do
    if found[i - 3] == 0 then found[i - 3] = redis.call('GET', KEYS[i]) end
  end
  if #held == 0 then give(KEYS[3], keys[wanted], ARGV[1], now) end
  return found
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
for i = 5, #KEYS do
  if ARGV[2 * i - 4] ~= '' then
    redis.call('SET', KEYS[i], ARGV[3] .. string.format('%013.0f', now) .. ARGV[2 * i - 4])
    if ARGV[2 * i - 5] == '' then redis.call('ZADD', KEYS[2], 0, keys[i]) end
  end
end
for _, key in ipairs(held) do pass(KEYS[3], KEYS[4], string.sub(KEYS[1], 1, -8), key, now) end
return {missed(last, tonumber(ARGV[2 * #KEYS - 3]), now) and 2 or 1}
"""
)
"""
Write all states, or none if one is no longer of the version that it was read as; then, those that are not, and 1 for others: the
writer may go first at one of them from now on. Somebody else may: 3, and the place of the state to wait in line for.

KEYS: writers, keys, turns, line, states. ARGV: writer, number, its version, where a key begins in the name; for each state
the version it was and what it becomes (nothing: as it is); the number of the writer's commit before.
"""

POKE: Final = Script(
    _TURNS
    + """
local now, key, writer = time(), ARGV[1], ARGV[2]
local line = redis.call('ZRANGEBYLEX', KEYS[2], '[' .. key .. '\\0', '(' .. key .. '\\1')
local whose = holder(KEYS[1], key, now)
if whose and whose ~= writer then
  for _, one in ipairs(line) do
    if string.sub(one, -8) == writer then return false end
  end
  redis.call('ZADD', KEYS[2], 0, key .. '\\0' .. string.format('%016.0f', now) .. writer)
  return false
end
for _, one in ipairs(line) do redis.call('ZREM', KEYS[2], one) end
give(KEYS[1], key, writer, now)
redis.call('DEL', KEYS[4])
return redis.call('GET', KEYS[3]) or ''
"""
)
"""
Give the turn at a state to who asks, if nobody has it: the one before has died, and others in line may have died with it. So the
line begins anew; those who live ask too, and stand in it again. The state, or false if somebody has the turn.

KEYS: turns, line, state, what the writer is told of it. ARGV: key, writer.
"""

SETTLE: Final = Script(
    _MISSED
    + """
local last = redis.call('ZSCORE', KEYS[1], ARGV[1])
local known = missed(last, tonumber(ARGV[4]), redis.call('TIME')[1] * 1000) and 2 or 1
if last and tonumber(last) >= tonumber(ARGV[2]) then return {known, last} end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return {known, ARGV[3]}
"""
)
"""
Whether the commit whose answer was lost took place. If not, it never will: its number is passed over.

KEYS: writers. ARGV: writer, number, the number to pass it over by, that of the writer's commit before. 2 if that one is lost, and
the number of the writer's latest.
"""

DROP: Final = Script("""
local now, dropped = redis.call('TIME')[1] * 1000, 0
for i = 2, #KEYS do
  local at = ARGV[2] ~= '' and tonumber(redis.call('GETRANGE', KEYS[i], 16, 28))
  if ARGV[2] == '' or (at and now - at > tonumber(ARGV[2])) then
    dropped = dropped + redis.call('DEL', KEYS[i])
    redis.call('ZREM', KEYS[1], string.sub(KEYS[i], ARGV[1]))
  end
end
return dropped
""")
"""KEYS: keys, states. ARGV: where a key begins in the name, the milliseconds it was idle (nothing: any). How many."""
