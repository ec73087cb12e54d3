"""Programs for the server: conditions, writes and reads that one script applies together or not at all.

A program may be sent again when nobody knows whether it ran: a second run has the same result. The script declares
every key that it touches, and uses no command that Kvrocks lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1

from scrapy_neardup.server.layout import (
    COUNTER,
    DIRECTORY,
    GIVEN_UP,
    HIGHEST,
    PENDING,
    Names,
    OnLevels,
    is_posting,
    is_url,
    level_of,
    names_on,
    spot,
)

#: The first keys of each run.
_COMMON = (DIRECTORY, HIGHEST, COUNTER)


#: An operation of the script, the keys that it touches, and its arguments.
_Operation = tuple[bytes, Names, "tuple[bytes | int, ...]"]


class Program:
    """Operations for one state. The script runs the conditions first, then the writes, then the reads."""

    __slots__ = ("_conditions", "_postings", "_reads", "_writes", "levels")

    def __init__(self, levels: int) -> None:
        """``levels``: how many the caller knows of. If more are in use, the script says so and does nothing."""
        self.levels = levels
        self._conditions: list[_Operation] = []
        self._writes: list[_Operation] = []
        self._reads: list[_Operation] = []
        #: Keys under which a page is filed, by page and level. One operation files all of them.
        self._postings: dict[tuple[bytes, int], list[bytes]] = {}

    def parts(self, prefix: bytes) -> tuple[list[bytes], list[bytes | int]]:
        """Return the keys and the arguments of the script. ``prefix`` stands before the name of each key."""
        postings = list[_Operation]()
        for (id, level), filed in self._postings.items():
            postings.append((b"use_level", (), (level + 1,)))
            postings.append((b"file", tuple(names_on(b"k", filed, level)), (b"".join(filed), id)))
        names, first_of = [*_COMMON], dict[Names, tuple[int, int]]()
        levels, arguments = 0, list[bytes | int]()
        for operation, where, more in (*self._conditions, *self._writes, *postings, *self._reads):
            begin = first_of.get(where)
            if begin is None:
                if isinstance(where, OnLevels):
                    levels = self.levels
                keys = where.names(levels) if isinstance(where, OnLevels) else where
                begin = first_of[where] = (len(names) + 1, len(keys))
                names += keys
            arguments += (operation, *begin, *more)
        return [prefix + name for name in names], [levels, *arguments]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._conditions or self._reads or self.has_writes)

    @property
    def has_writes(self) -> bool:
        """Whether it changes anything."""
        return bool(self._writes or self._postings)

    # Conditions.

    def expect(self, row: bytes, value: bytes | None) -> None:
        """Require that a row has not changed; the row of a URL may have another time, but must name the same page."""
        where = spot(row)
        if value is None:
            self._conditions.append((b"absent", where.names, (where.field,)))
        elif is_url(row):
            self._conditions.append((b"begins", where.names, (where.field, value[:8])))
        else:
            self._conditions.append((b"equals", where.names, (where.field, value)))

    def expect_in_flight(self, name: bytes, field: bytes, record: bytes, value: bytes) -> None:
        """Require that a hash has a field, or that the row of a record already has the value of this program."""
        names, row, _ = spot(record)
        self._conditions.append((b"in_flight", (name, names[0]), (field, row, value)))

    def expect_lease(self, name: bytes, token: bytes, milliseconds: int, crawl: bytes) -> None:
        """Require that a lease is ours, or take it anew if it ended and nobody has begun to roll the crawl back."""
        names, row, _ = spot(crawl)
        self._conditions.append((b"lease", (name, names[0], GIVEN_UP), (token, milliseconds, row)))

    def expect_no_lease(self, name: bytes) -> None:
        """Require that nobody holds a lease."""
        self._conditions.append((b"no_lease", (name,), ()))

    def take_lease(self, name: bytes, token: bytes, milliseconds: int) -> None:
        """Take or renew a lease; require that nobody else holds it."""
        self._conditions.append((b"take_lease", (name,), (token, milliseconds)))

    # Writes.

    def put(self, row: bytes, value: bytes, pages: int) -> None:
        """Write a row. The level depends on the number of ``pages`` in the state."""
        if is_posting(row):
            self._postings.setdefault((row[-8:], level_of(pages)), []).append(row[1:-8])
            return
        names, field, listed = spot(row)
        if is_url(row):
            level = level_of(pages) + 1
            self.levels = max(self.levels, level)
            self._writes.append((b"put_url", names, (field, value, level)))
        else:
            self._writes.append((b"put", names, (field, value, listed, _counted(row))))

    def delete(self, row: bytes) -> None:
        """Delete a row, if it exists."""
        if is_posting(row):
            self._writes.append((b"unfile", OnLevels(b"k", (row[1:-8],)), (row[1:],)))
        else:
            names, field, listed = spot(row)
            self._writes.append((b"delete", names, (field, listed, _counted(row))))

    def see(self, row: bytes, id: bytes, seconds: bytes) -> None:
        """Move the time forward at which a URL was last seen, if it still names this page."""
        names, field, _ = spot(row)
        self._writes.append((b"see", names, (field, id, seconds)))

    def register(self, page: bytes, heads: Sequence[bytes]) -> None:
        """Add a page in flight under each of its ``heads``."""
        scored = [part for head in heads for part in (0, head + page)]
        self._writes.append((b"add", (PENDING,), (len(scored), *scored)))

    def unregister(self, page: bytes, heads: Sequence[bytes]) -> None:
        """Remove a page in flight."""
        self._writes.append((b"remove", (PENDING,), (len(heads), *(head + page for head in heads))))

    def set_field(self, name: bytes, field: bytes, value: bytes) -> None:
        """Set a field of a hash that is not part of the state."""
        self._writes.append((b"put", (name,), (field, value, b"", b"")))

    def delete_field(self, name: bytes, field: bytes) -> None:
        """Delete a field of such a hash."""
        self._writes.append((b"delete", (name,), (field, b"", b"")))

    def append(self, name: bytes, most: int, value: bytes) -> None:
        """Append to a stream that keeps ``most`` entries."""
        self._writes.append((b"append", (name,), (most, value)))

    def end_lease(self, name: bytes, token: bytes) -> None:
        """Give back a lease, if it is ours."""
        self._writes.append((b"end_lease", (name,), (token,)))

    # Reads; each adds one answer.

    def get(self, row: bytes) -> None:
        """Answer the value of a row, or None."""
        names, field, _ = spot(row)
        self._reads.append((b"get", names, (field,)))

    def get_field(self, name: bytes, field: bytes) -> None:
        """Answer the value of a field of a hash that is not part of the state, or None."""
        self._reads.append((b"get", (name,), (field,)))

    def newest(self, keys: Sequence[bytes], most: int) -> None:
        """Answer the postings of keys of one length in one list: up to ``most`` of each key and level, newest first."""
        self._reads.append((b"newest", OnLevels(b"k", tuple(keys)), (len(keys), b"".join(keys), most)))

    def in_flight(self, heads: Sequence[bytes]) -> None:
        """Answer the pages in flight that have one of these ``heads``, each behind its head."""
        self._reads.append((b"newest", (PENDING,), (len(heads), b"".join(heads), -1)))

    def milliseconds_left(self, name: bytes) -> None:
        """Answer how long a lease lasts; less than 0 if nobody holds it."""
        self._reads.append((b"milliseconds_left", (name,), ()))

    def count(self) -> None:
        """Answer the number of pages as digits; None for none."""
        self._reads.append((b"count", (), ()))


def _counted(row: bytes) -> bytes:
    """Return whether a row counts as a page."""
    return b"1" if row[:1] == b"r" else b""


#: Answers ``{1, …}``, or ``{0, condition}`` if a condition does not hold, or ``{2, levels}`` if more levels are in use
#: than the program knows. The arguments are the number of levels and the operations. Each operation is a name, the
#: position and number of its keys, and its own arguments.
SCRIPT = """\
local call, sub = redis.call, string.sub
local DIRECTORY, HIGHEST, COUNTER = KEYS[1], KEYS[2], KEYS[3]
local at, answers = 2, {1}
local function arg() at = at + 1; return ARGV[at - 1] end

local highest
local function levels()
  highest = highest or tonumber(call('GET', HIGHEST) or 1)
  return highest
end
local function use_level(level)
  if level > levels() then
    highest = level
    call('SET', HIGHEST, level)
  end
end

local function find(first, count, field)
  for n = first + count - 1, first, -1 do
    local value = call('HGET', KEYS[n], field)
    if value then return value, KEYS[n] end
  end
  return false
end
local function take_lease(name, token, milliseconds)
  local holder = call('GET', name)
  if holder and holder ~= token then return false end
  call('SET', name, token, 'PX', milliseconds)
  return true
end
-- The arguments that follow their number.
local function several()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return unpack(ARGV, first, last)
end
local BEYOND = string.rep('\\255', 10)

local operations = {
  -- Conditions.
  equals = function(first, count)
    local field, value = arg(), arg()
    return find(first, count, field) == value
  end,
  begins = function(first, count)
    local field, value = arg(), arg()
    local found = find(first, count, field)
    return found and sub(found, 1, #value) == value
  end,
  absent = function(first, count) return not find(first, count, arg()) end,
  in_flight = function(first, count)
    local field, row, value = arg(), arg(), arg()
    return call('HEXISTS', KEYS[first], field) == 1 or find(first + 1, count - 1, row) == value
  end,
  lease = function(first)
    local token, milliseconds, crawl = arg(), arg(), arg()
    local holder = call('GET', KEYS[first])
    if holder then return holder == token end
    local is_known, is_given_up = call('HEXISTS', KEYS[first + 1], crawl), call('HEXISTS', KEYS[first + 2], crawl)
    if is_known == 0 or is_given_up == 1 then return false end
    return take_lease(KEYS[first], token, milliseconds)
  end,
  no_lease = function(first) return call('EXISTS', KEYS[first]) == 0 end,
  take_lease = function(first) return take_lease(KEYS[first], arg(), arg()) end,

  -- Writes.
  put = function(first)
    local field, value, listed, is_page = arg(), arg(), arg(), arg()
    if call('HSET', KEYS[first], field, value) == 1 then
      if is_page ~= '' then call('INCR', COUNTER) end
      if listed ~= '' and call('HLEN', KEYS[first]) == 1 then call('ZADD', DIRECTORY, 0, listed) end
    end
  end,
  put_url = function(first, count)
    local field, value, level = arg(), arg(), tonumber(arg())
    use_level(level)
    for n = 1, count do if n ~= level then call('HDEL', KEYS[first + n - 1], field) end end
    call('HSET', KEYS[first + level - 1], field, value)
  end,
  delete = function(first, count)
    local field, listed, is_page = arg(), arg(), arg()
    for n = first, first + count - 1 do
      if call('HDEL', KEYS[n], field) == 1 then
        if is_page ~= '' then call('DECR', COUNTER) end
        if listed ~= '' and call('EXISTS', KEYS[n]) == 0 then call('ZREM', DIRECTORY, listed) end
      end
    end
  end,
  see = function(first, count)
    local field, id, seconds = arg(), arg(), arg()
    local value, key = find(first, count, field)
    if value and sub(value, 1, 8) == id and sub(value, 9) < seconds then call('HSET', key, field, id .. seconds) end
  end,
  use_level = function() use_level(tonumber(arg())) end,
  file = function(first, count)
    local heads, page = arg(), arg()
    local size = #heads / count
    for n = 0, count - 1 do call('ZADD', KEYS[first + n], 0, sub(heads, size * n + 1, size * n + size) .. page) end
  end,
  unfile = function(first, count)
    local posting = arg()
    for n = first, first + count - 1 do call('ZREM', KEYS[n], posting) end
  end,
  add = function(first) call('ZADD', KEYS[first], several()) end,
  remove = function(first) call('ZREM', KEYS[first], several()) end,
  append = function(first) call('XADD', KEYS[first], 'MAXLEN', arg(), '*', 'n', arg()) end,
  end_lease = function(first) if call('GET', KEYS[first]) == arg() then call('DEL', KEYS[first]) end end,

  -- Reads.
  get = function(first, count) local value = find(first, count, arg()); answers[#answers + 1] = value end,
  newest = function(first, count)
    local many, heads, most, found = tonumber(arg()), arg(), arg(), {}
    local size = #heads / many
    for n = 0, many - 1 do
      local low = '[' .. sub(heads, size * n + 1, size * n + size)
      for key = first + n % count, first + count - 1, many do  -- one set has all, or each has its own on each level
        local some = call('ZREVRANGEBYLEX', KEYS[key], low .. BEYOND, low, 'LIMIT', 0, most)
        for m = 1, #some do found[#found + 1] = some[m] end
      end
    end
    answers[#answers + 1] = found
  end,
  milliseconds_left = function(first) answers[#answers + 1] = call('PTTL', KEYS[first]) end,
  count = function() answers[#answers + 1] = call('GET', COUNTER) end,
}

local function run()
  local known = tonumber(ARGV[1])
  if known > 0 and levels() > known then return {2, levels()} end
  while at <= #ARGV do
    local name, first, count = arg(), tonumber(arg()), tonumber(arg())
    if operations[name](first, count) == false then return {0, name} end
  end
  return answers
end
local is_done, result = pcall(run)
if is_done then return result end
-- Before version 7 Redis puts the place in the script before the error.
local message = type(result) == 'table' and result.err or tostring(result)
return {err = string.match(message, '%u%u%u+ .*') or 'ERR ' .. message}
"""
#: The digest by which the server knows the script.
DIGEST = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
