"""
Scripts that a server of Redis runs atomically. They compare and write bytes and add up numbers, and know nothing of sessions or guards.

All keys of a store begin with its namespace in braces, so that a cluster keeps them in one slot, and stores of other namespaces in others:

    {ns}:store    what made it, and the version of this layout
    {ns}:writers  of each writer, the number of its latest commit
    {ns}:keys     of all states
    {ns}:s:KEY    of a session: a version of 16 bytes (the writer, its commit); when it was changed last, in milliseconds by the
                  server's clock, 13 digits; the packed state
    {ns}:a:KEY    of a scope, a hash (0.2.0 had one like a session's): `v`, its version; its amounts; `rest`, the packed state without them; `drops`, how often an amount fell; `at`
"""

from typing import Final


MARK_BYTES: Final = 16
HEAD_BYTES: Final = 29
FORMAT: Final = b"toolcall-guardrails 2"
KEPT_MS: Final = 86_400_000
"""How long a writer is known that commits nothing: a day."""

_STATES: Final = """
local function before(key)
  return string.sub(KEYS[1], 1, -8) .. 's:' .. string.sub(key, #ARGV[1] + 1)
end
local function fields(is)
  local kept = {}
  for name, value in pairs(is) do
    if name ~= 'rest' and name ~= 'at' then kept[name] = value end
  end
  return cjson.encode(kept)
end
local function states(done)
  local found = {}
  for i = 3, #KEYS do
    local hash = string.sub(KEYS[i], 1, #ARGV[1]) == ARGV[1]
    local one = done and not hash and '' or redis.call(hash and 'HGETALL' or 'GET', KEYS[i])
    if hash and #one == 0 then
      one = redis.call('GET', before(KEYS[i]))
    elseif hash then
      local is = {}
      for j = 1, #one, 2 do is[one[j]] = one[j + 1] end
      one = {fields(is), is.rest or '', is.at}
    end
    found[#found + 1] = one
  end
  return found
end
"""

LOOK: Final = f"{_STATES}\nreturn states()"
"""KEYS: writers, keys, states. ARGV: what the name of a scope begins with. Of each its bytes, or of a scope its amounts as JSON, its rest, when."""

COMMIT: Final = (
    _STATES
    + """
local last = redis.call('ZSCORE', KEYS[1], ARGV[2])
if last and tonumber(last) >= tonumber(ARGV[3]) then return {1, states(true)} end
local lost = tonumber(ARGV[4]) > tonumber(last or 0)
local place, stale, writes, kept = 7, false, {}, {}
for i = 3, #KEYS do
  local key = KEYS[i]
  if string.sub(key, 1, #ARGV[1]) ~= ARGV[1] then
    if redis.call('GETRANGE', key, 0, 15) ~= ARGV[place] then stale = true end
    if ARGV[place + 1] ~= '' then writes[#writes + 1] = {key, ARGV[place + 1], ARGV[place] == ''} end
    kept[i - 2] = ''
    place = place + 2
  else
    local version, exact, drops, amounts, sums = unpack(cjson.decode(ARGV[place]))
    local found, is = redis.call('HGETALL', key), {}
    for j = 1, #found, 2 do is[found[j]] = found[j + 1] end
    local same, crossed = (is.v or '') == version, drops ~= '' and (is.drops or '0') ~= drops
    if (is.rest or '') ~= ARGV[place + 1] then same, crossed = false, true end
    local set, great, after = {}, {}, {}
    for j, amount in ipairs(amounts) do
      local name, floor, add = unpack(amount)
      local old = is[name] or '0'
      if floor ~= '' and tonumber(old) < tonumber(floor) then old = floor end
      local value = tonumber(old) + tonumber(add)
      after[name] = value
      -- Numbers of a script are exact up to 2^53.
      if math.abs(value) < 9e15 then is[name] = string.format('%.0f', value) else great[#great + 1] = {name, old, add} end
      set[#set + 1] = name
      set[#set + 1] = is[name] or old
    end
    for _, sum in ipairs(sums) do
      local total = 0
      for j = 2, #sum do total = total + (after[sum[j]] or tonumber(is[sum[j]] or 0)) end
      if total >= tonumber(sum[1]) then crossed = true end
    end
    if not same and (exact or crossed) then stale = true end
    if #set > 0 or ARGV[place + 2] ~= '' then
      if ARGV[place + 2] ~= '' then is.rest = ARGV[place + 2] end
      is.v = string.format('%.0f', tonumber(is.v or 0) + 1)
      for _, name in ipairs({'rest', 'v'}) do
        set[#set + 1] = name
        set[#set + 1] = is[name]
      end
      writes[#writes + 1] = {key, set, version == '', great, is}
    end
    kept[i - 2] = is
    place = place + 3
  end
end
if stale then return {0, states()} end
local time = redis.call('TIME')
local now = string.format('%013.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[2])
for _, write in ipairs(writes) do
  local key, value, new, great, is = unpack(write)
  if not is then
    redis.call('SET', key, ARGV[5] .. now .. value)
  else
    redis.call('HSET', key, 'at', now, unpack(value))
    for _, amount in ipairs(great) do
      redis.call('HSET', key, amount[1], amount[2])
      is[amount[1]] = redis.call('HINCRBY', key, amount[1], amount[3])
      is[amount[1]] = redis.call('HGET', key, amount[1])
    end
    if new then redis.call('DEL', before(key)) end
  end
  if new then redis.call('ZADD', KEYS[2], 0, string.sub(key, tonumber(ARGV[6]))) end
end
for i, is in ipairs(kept) do
  if is ~= '' then kept[i] = {fields(is)} end
end
return {lost and 2 or 1, kept}
"""
)
"""
Do what a step did, all or nothing. 1: done; 0: it is to be done again, since others were there meanwhile; 2: done, and the writer's commit
before is lost. Then what the states are now, if done those of scopes.

KEYS: writers, keys, states. ARGV: what the name of a scope begins with; writer, number, the number of its commit before, its version,
where a key begins in a name. Then, of a session: the version it was, its bytes (nothing: as it is). Of a scope: a list as JSON, what its
rest was, what that is (nothing: as it is). The list: its version (nothing: new), whether nothing else may have happened, how often amounts
fell if that is not to have changed, amounts (name, the least it is by now or nothing, what is added), sums (below what, of which amounts).
"""

DROP: Final = """
local now, dropped = redis.call('TIME')[1] * 1000, 0
for i = 2, #KEYS do
  local hash = string.sub(KEYS[i], 1, #ARGV[3]) == ARGV[3]
  local at = ARGV[2] ~= '' and tonumber(hash and redis.call('HGET', KEYS[i], 'at') or not hash and redis.call('GETRANGE', KEYS[i], 16, 28))
  if ARGV[2] == '' or (at and now - at > tonumber(ARGV[2])) then
    dropped = dropped + redis.call('DEL', KEYS[i])
    redis.call('ZREM', KEYS[1], string.sub(KEYS[i], tonumber(ARGV[1])))
  end
end
return dropped
"""
"""KEYS: keys, states. ARGV: where a key begins in a name, the milliseconds it was idle (nothing: any), how a scope begins. How many."""

OPEN: Final = f"""
local found = redis.call('GET', KEYS[1])
if found == 'toolcall-guardrails 1' or not found then
  redis.call('SET', KEYS[1], ARGV[1])
  found = ARGV[1]
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', redis.call('TIME')[1] * 1000000 - {KEPT_MS}000))
return found
"""
"""KEYS: store, writers. ARGV: format. The format that is there; that of 0.2.0 is gone over from."""
