"""What is done on the server in one piece: conditions, then writes and reads, all of it or nothing.

One script for everything, which takes a list of steps: nothing else is between them, every key is declared, and no
command is used that Kvrocks lacks. A program may be run twice with the same end, so it may be sent again when nobody
knows whether it was done.
"""

from __future__ import annotations

from scrapy_neardup.stores.redis_layout import (
    COUNTER,
    DIRECTORY,
    GIVEN_UP,
    Spot,
    is_posting,
    level_of,
    posting_names,
    spot,
)

SCRIPT = """\
local at, out = 1, {1}
local function arg() at = at + 1; return ARGV[at - 1] end
local function key() return KEYS[tonumber(arg())] end
local function keys()
  local found, many, first = {}, tonumber(arg()), tonumber(arg())
  for n = 1, many do found[n] = KEYS[first + n - 1] end
  return found
end
local function found(places, field)
  for n = #places, 1, -1 do
    local value = redis.call('HGET', places[n], field)
    if value then return value, places[n] end
  end
  return false
end
local function lease(name, token, ms)
  local held = redis.call('GET', name)
  if held == token or not held then redis.call('SET', name, token, 'PX', ms); return true end
  return false
end
local steps = {
  -- Conditions; the program begins with them, and ends with the first that does not hold.
  ['='] = function() local places, field, value = keys(), arg(), arg(); return found(places, field) == value end,
  ['^'] = function()
    local places, field, value = keys(), arg(), arg()
    local there = found(places, field)
    return there and string.sub(there, 1, #value) == value
  end,
  ['!'] = function() return not found(keys(), arg()) end,
  ['?'] = function()
    local first, field, places, other, value = keys(), arg(), keys(), arg(), arg()
    return found(first, field) ~= false or found(places, other) == value
  end,
  ['L'] = function()
    local name, token, ms, crawls, crawl, given_up = key(), arg(), arg(), key(), arg(), key()
    local held = redis.call('GET', name)
    if held == token then return true end
    if held or redis.call('HEXISTS', crawls, crawl) == 0 then return false end
    return redis.call('HEXISTS', given_up, crawl) == 0 and lease(name, token, ms)
  end,
  ['0'] = function() return redis.call('EXISTS', key()) == 0 end,
  ['l'] = function() return lease(key(), arg(), arg()) end,
  -- Writes.
  ['h'] = function()
    local places, field, value, to, listed, counted = keys(), arg(), arg(), tonumber(arg()), arg(), arg()
    for n, place in ipairs(places) do if n ~= to then redis.call('HDEL', place, field) end end
    if redis.call('HSET', places[to], field, value) == 1 then
      if counted ~= '' then redis.call('INCR', KEYS[tonumber(counted)]) end
      if listed ~= '' and redis.call('HLEN', places[to]) == 1 then
        redis.call('ZADD', KEYS[1], 0, listed)
      end
    end
  end,
  ['d'] = function()
    local places, field, listed, counted = keys(), arg(), arg(), arg()
    for _, place in ipairs(places) do
      if redis.call('HDEL', place, field) == 1 then
        if counted ~= '' then redis.call('DECR', KEYS[tonumber(counted)]) end
        if listed ~= '' and redis.call('EXISTS', place) == 0 then redis.call('ZREM', KEYS[1], listed) end
      end
    end
  end,
  ['s'] = function()
    local places, field, id, seen = keys(), arg(), arg(), arg()
    local value, place = found(places, field)
    if value and string.sub(value, 1, 8) == id and string.sub(value, 9) < seen then
      redis.call('HSET', place, field, id .. seen)
    end
  end,
  ['z'] = function() redis.call('ZADD', key(), 0, arg()) end,
  ['y'] = function()
    local places, member = keys(), arg()
    for _, one in ipairs(places) do redis.call('ZREM', one, member) end
  end,
  ['a'] = function() redis.call('XADD', key(), 'MAXLEN', arg(), '*', 'n', arg()) end,
  ['x'] = function()
    local name, token = key(), arg()
    if redis.call('GET', name) == token then redis.call('DEL', name) end
  end,
  -- Reads.
  ['g'] = function() local value = found(keys(), arg()); out[#out + 1] = value end,
  ['r'] = function()
    local places, begin, most = keys(), '[' .. arg(), arg()
    local high = begin .. string.rep('\\255', 10)
    local all = {}
    for _, place in ipairs(places) do
      local some = redis.call('ZREVRANGEBYLEX', place, high, begin, 'LIMIT', 0, most)
      for _, one in ipairs(some) do all[#all + 1] = one end
    end
    out[#out + 1] = all
  end,
  ['e'] = function() out[#out + 1] = redis.call('EXISTS', key()) end,
  ['n'] = function() out[#out + 1] = redis.call('GET', key()) end,
}
while at <= #ARGV do
  local begun = at
  if steps[arg()]() == false then return {0, begun} end
end
return out
"""


class Program:
    """The steps, for one state on the server by its prefix; conditions first, then writes, then reads."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._names: list[bytes] = []
        self._places: dict[tuple[bytes, ...], int] = {}
        self._conditions: list[bytes | int] = []
        self._writes: list[bytes | int] = []
        self._reads: list[bytes | int] = []
        self._key(DIRECTORY)

    @property
    def keys(self) -> list[bytes]:
        return [self._prefix + name for name in self._names]

    @property
    def arguments(self) -> list[bytes | int]:
        return [*self._conditions, *self._writes, *self._reads]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._conditions or self._writes or self._reads)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return bool(self._writes)

    # Conditions.

    def expect(self, row: bytes, value: bytes | None) -> None:
        """Only if a row is still what it was; of a URL, if it still names the same page, whenever that was seen."""
        where = spot(row)
        if value is None:
            self._conditions += [b"!", *self._keys(where), where.field]
        elif row[:1] == b"u":
            self._conditions += [b"^", *self._keys(where), where.field, value[:8]]
        else:
            self._conditions += [b"=", *self._keys(where), where.field, value]

    def expect_either(self, name: bytes, field: bytes, row: bytes, value: bytes) -> None:
        """Only if a hash has a field, or a row is what we are to write, for we have done so before."""
        where = spot(row)
        self._conditions += [b"?", 1, self._key(name), field, *self._keys(where), where.field, value]

    def expect_lease(self, name: bytes, token: bytes, milliseconds: int, crawl: Spot) -> None:
        """Only if we hold a lease, or nobody does and nobody has begun to take the crawl back: then we do again."""
        where = self._key(crawl.names[0]), crawl.field, self._key(GIVEN_UP)
        self._conditions += [b"L", self._key(name), token, milliseconds, *where]

    def expect_ended(self, name: bytes) -> None:
        """Only if nobody holds a lease."""
        self._conditions += [b"0", self._key(name)]

    def take_lease(self, name: bytes, token: bytes, milliseconds: int) -> None:
        """Only if nobody else holds a lease; then we do, for so long."""
        self._conditions += [b"l", self._key(name), token, milliseconds]

    # Writes.

    def put(self, row: bytes, value: bytes, pages: int) -> None:
        """Write a row, on the level for so many pages."""
        if is_posting(row):
            self.file(posting_names(row[1:9])[level_of(pages)], row[1:])
            return
        where = spot(row)
        to = level_of(pages) + 1 if len(where.names) > 1 else 1
        self._writes += [b"h", *self._keys(where), where.field, value, to, *self._about(row, where)]

    def delete(self, row: bytes) -> None:
        """Remove a row, if it is there."""
        if is_posting(row):
            self._writes += [b"y", *self._all(posting_names(row[1:9])), row[1:]]
            return
        where = spot(row)
        self._writes += [b"d", *self._keys(where), where.field, *self._about(row, where)]

    def see(self, row: bytes, id: bytes, seconds: bytes) -> None:
        """Move on the time at which a URL was seen, if it still names this page."""
        where = spot(row)
        self._writes += [b"s", *self._keys(where), where.field, id, seconds]

    def file(self, name: bytes, member: bytes) -> None:
        """Add to a sorted set."""
        self._writes += [b"z", self._key(name), member]

    def unfile(self, name: bytes, member: bytes) -> None:
        """Remove from a sorted set."""
        self._writes += [b"y", 1, self._key(name), member]

    def note(self, name: bytes, field: bytes, value: bytes) -> None:
        """Set a field of a hash that is no part of the state."""
        self._writes += [b"h", 1, self._key(name), field, value, 1, b"", b""]

    def strike(self, name: bytes, field: bytes) -> None:
        """Remove a field of such a hash."""
        self._writes += [b"d", 1, self._key(name), field, b"", b""]

    def append(self, name: bytes, most: int, value: bytes) -> None:
        """Add to a stream that holds so many entries at most."""
        self._writes += [b"a", self._key(name), most, value]

    def end_lease(self, name: bytes, token: bytes) -> None:
        """Give back a lease that is ours."""
        self._writes += [b"x", self._key(name), token]

    # Reads; each has one answer.

    def get(self, row: bytes) -> None:
        """The value of a row, or None."""
        where = spot(row)
        self._reads += [b"g", *self._keys(where), where.field]

    def field(self, name: bytes, field: bytes) -> None:
        """The value of a field of a hash that is no part of the state, or None."""
        self._reads += [b"g", 1, self._key(name), field]

    def newest(self, key: bytes, most: int) -> None:
        """Postings of a key by its 8 bytes: so many of each level, the newest of each first."""
        self._range(posting_names(key), key, most)

    def members(self, name: bytes, begin: bytes) -> None:
        """Members of a sorted set that begin so."""
        self._range((name,), begin, -1)

    def held(self, name: bytes) -> None:
        """Whether somebody holds a lease: 1 or 0."""
        self._reads += [b"e", self._key(name)]

    def count(self) -> None:
        """The number of pages, as digits; None for none."""
        self._reads += [b"n", self._key(COUNTER)]

    def _range(self, names: tuple[bytes, ...], begin: bytes, most: int) -> None:
        self._reads += [b"r", *self._all(names), begin, most]

    def _key(self, name: bytes) -> int:
        return self._all((name,))[1]

    def _all(self, names: tuple[bytes, ...]) -> list[int]:
        """How many keys, and where the first of them stands: one behind the other, as each argument takes its time."""
        first = self._places.get(names)
        if first is None:
            first = self._places[names] = len(self._names) + 1
            self._names += names
        return [len(names), first]

    def _keys(self, where: Spot) -> list[int]:
        return self._all(where.names)

    def _about(self, row: bytes, where: Spot) -> tuple[bytes, bytes | int]:
        counted = self._key(COUNTER) if row[:1] == b"r" else b""
        return (where.names[0] if where.listed else b""), counted
