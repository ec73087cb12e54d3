"""One atomic program for the server: checks, then writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from scrapy_neardup.server.layout import (
    COUNTER,
    DIRECTORY,
    GIVEN_UP,
    HIGHEST,
    PENDING,
    Spot,
    is_posting,
    is_url,
    level_of,
    names_on,
    spot,
)

# ----------------------------------------------------------------------------------------------------------------------
# What is done on the server in one piece: conditions, then writes and reads, all of it or nothing.
#
# A program is a list of steps for ``redis_script``, and the keys that they touch. It may be run twice with the same
# end, so it may be sent again when nobody knows whether it was done. What is done to many keys alike is one step: a
# page has ten of them, and each argument takes its time.


#: The keys that each run of the script has first.
COMMON = (DIRECTORY, HIGHEST, COUNTER)

_Steps = list[bytes | int]


class _OnLevels(NamedTuple):
    """Keys that are on each level, and where in the steps it is said how many levels, and where the first key is."""

    steps: _Steps
    at: int
    letter: bytes
    keys: tuple[bytes, ...]


class Program:
    """The steps, for one state on the server; conditions first, then writes, then reads.

    ``levels``: how many of them are asked, as far as is known here; a server that knows more says so, and does nothing.
    """

    __slots__ = ("_conditions", "_names", "_on_levels", "_places", "_postings", "_reads", "_writes", "levels")

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self._names: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._conditions: _Steps = []
        self._writes: _Steps = []
        self._reads: _Steps = []
        self._on_levels: list[_OnLevels] = []
        #: Keys under which a page is filed, by page and level: all in one step.
        self._postings: dict[tuple[bytes, int], list[bytes]] = {}

    def parts(self) -> tuple[list[bytes], _Steps]:
        """Names of its keys, and the arguments, as a run of the script takes them behind those in ``COMMON``."""
        names, writes, placed = self._names.copy(), self._writes, dict[tuple[bytes, tuple[bytes, ...]], int]()
        for steps, at, letter, keys in self._on_levels:
            first = placed.get((letter, keys))
            if first is None:
                first = placed[letter, keys] = len(names) + 1
                for level in range(self.levels):
                    names += names_on(letter, keys, level)
            steps[at : at + 2] = self.levels, first
        if self._postings:
            writes = writes.copy()
        for (id, level), filed in self._postings.items():
            writes += [b"k", level + 1, len(names) + 1, len(filed), b"".join(filed), id]
            names += names_on(b"k", filed, level)
        levels = self.levels if self._on_levels else 0
        many = len(self._conditions) + len(writes) + len(self._reads)
        return names, [many, len(names), levels, int(self.writes), *self._conditions, *writes, *self._reads]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._conditions or self._reads or self.writes)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return bool(self._writes or self._postings)

    # Conditions.

    def expect(self, row: bytes, value: bytes | None) -> None:
        """Only if a row is still what it was; of a URL, if it still names the same page, whenever that was seen."""
        if value is None:
            self._row(self._conditions, b"!", row)
        elif row[:1] == b"u":
            self._row(self._conditions, b"^", row, value[:8])
        else:
            self._row(self._conditions, b"=", row, value)

    def expect_either(self, name: bytes, field: bytes, row: bytes, value: bytes) -> None:
        """Only if a hash has a field, or a row is what we are to write, for we have done so before."""
        self._conditions += [b"?", self._key(name)]
        self._row(self._conditions, field, row, value)

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
            self._postings.setdefault((row[-8:], level_of(pages)), []).append(row[1:-8])
        elif is_url(row):
            level = level_of(pages) + 1
            self.levels = max(self.levels, level)
            self._writes += [b"H", level]
            self._each_level(self._writes, b"u", (row[1:],))
            self._writes += [row[1:], value]
        else:
            where = spot(row)
            self._writes += [b"h", self._key(where.names[0]), where.field, value, *_about(row, where)]

    def delete(self, row: bytes) -> None:
        """Remove a row, if it is there."""
        if is_posting(row):
            self._writes.append(b"y")
            self._each_level(self._writes, b"k", (row[1:-8],))
            self._writes.append(row[1:])
        else:
            self._row(self._writes, b"d", row, *_about(row, spot(row)))

    def see(self, row: bytes, id: bytes, seconds: bytes) -> None:
        """Move on the time at which a URL was seen, if it still names this page."""
        self._row(self._writes, b"s", row, id, seconds)

    def enter(self, page: bytes, heads: bytes, *, answers: bool = False) -> None:
        """Have a page, by 16 bytes, found by whoever has one of these 8 bytes in common with it.

        If it ``answers``, with who has them already: 16 bytes for each, and the page itself if it was there before.
        """
        self._writes += [b"P" if answers else b"p", page, heads, self._key(PENDING)]

    def leave(self, page: bytes, heads: bytes) -> None:
        """It is there no more."""
        self._writes += [b"q", page, heads, self._key(PENDING)]

    def note(self, name: bytes, field: bytes, value: bytes) -> None:
        """Set a field of a hash that is no part of the state."""
        self._writes += [b"h", self._key(name), field, value, b"", b""]

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
        self._row(self._reads, b"g", row)

    def field(self, name: bytes, field: bytes) -> None:
        """The value of a field of a hash that is no part of the state, or None."""
        self._reads += [b"g", 1, self._key(name), field]

    def newest(self, keys: Sequence[bytes], most: int) -> None:
        """Postings of keys by their bytes, all in one list: of each key and level so many, its newest first.

        All keys have one length.
        """
        self._reads.append(b"r")
        self._each_level(self._reads, b"k", tuple(keys))
        self._reads += [len(keys), b"".join(keys), most]

    def entered(self, heads: bytes) -> None:
        """Who is there by ``enter`` that has one of these 8 bytes: 16 bytes for each."""
        self._reads += [b"v", heads, self._key(PENDING)]

    def lasts(self, name: bytes) -> None:
        """For how many milliseconds a lease is held; less than 0 if nobody holds it."""
        self._reads += [b"e", self._key(name)]

    def count(self) -> None:
        """The number of pages, as digits; None for none."""
        self._reads.append(b"n")

    def _key(self, name: bytes) -> int:
        place = self._places.get(name)
        if place is None:
            self._names.append(name)
            place = self._places[name] = len(self._names)
        return place

    def _row(self, steps: _Steps, step: bytes, row: bytes, *more: bytes) -> None:
        """Add a step: how many keys a row may be in, where the first of them stands, the field there, and more."""
        steps.append(step)
        if is_url(row):
            self._each_level(steps, b"u", (row[1:],))
            steps += [row[1:], *more]
        else:
            where = spot(row)
            steps += [1, self._key(where.names[0]), where.field, *more]

    def _each_level(self, steps: _Steps, letter: bytes, keys: tuple[bytes, ...]) -> None:
        self._on_levels.append(_OnLevels(steps, len(steps), letter, keys))
        steps += [0, 0]


def _about(row: bytes, where: Spot) -> tuple[bytes, bytes]:
    """The name by which the directory knows the key of a row, and whether the row is a page that is counted."""
    return (where.names[0] if where.listed else b""), (b"1" if row[:1] == b"r" else b"")


# ----------------------------------------------------------------------------------------------------------------------
# The one script that is done on the server: programs (``redis_program``), each of them all or nothing.
#
# Nothing else is between their steps, every key is declared, and no command is used that Kvrocks lacks. No error undoes
# what a script has written. So a program that writes looks first whether all its keys are of the right kind.
#
# Several programs go in one run of it: one of which a condition does not hold, or that finds a key of the wrong kind,
# is no matter of the others. What is a matter of the server (no memory left, a replica, a slot that moves) fails the
# run. Then nobody knows of any of them whether it was done.


#: The first keys of each run are the directory, the highest level that is filed on, and the number of pages. Behind
#: them stand those of the programs. Of each program come how many arguments and keys it has, how many levels these are
#: on, whether it writes, and then the arguments; it counts its keys from 1. If more levels are in use it is told so,
#: and nothing is done.
SCRIPT = """\
local at, base, out, highest, is_noted = 1, 3, nil, nil, false
local call = redis.call
local function arg() at = at + 1; return ARGV[at - 1] end
local function key() at = at + 1; return KEYS[base + ARGV[at - 1]] end
-- The levels that are in use: of a state that had no page yet there is one.
local function levels()
  if not highest then
    local noted = call('GET', KEYS[2])
    is_noted, highest = noted and true, tonumber(noted or (call('EXISTS', KEYS[3]) == 0 and 1 or 4))
  end
  return highest
end
local function rise(to)
  if to > levels() or not is_noted then
    highest, is_noted = math.max(highest, to), true
    call('SET', KEYS[2], highest)
  end
end
local function keys()
  local found, many, first = {}, math.min(arg(), levels()), base + arg()
  for n = 1, many do found[n] = KEYS[first + n - 1] end
  return found
end
local function found(places, field)
  for n = #places, 1, -1 do
    local value = call('HGET', places[n], field)
    if value then return value, places[n] end
  end
  return false
end
local function lease(name, token, ms)
  local held = call('GET', name)
  if held == token or not held then call('SET', name, token, 'PX', ms); return true end
  return false
end
-- Of pages on their way: who has what in common with a page, 16 bytes for each, and where one of them stands there.
local function among(heads)
  local name, fields = key(), {}
  for n = 1, #heads, 8 do fields[#fields + 1] = string.sub(heads, n, n + 7) end
  return name, fields, call('HMGET', name, unpack(fields))
end
local function place_of(page, all)
  for n = 1, #all, 16 do if string.sub(all, n, n + 15) == page then return n end end
end
-- A packed hash is searched from one end to the other; one that has a long value is not packed.
local long = string.rep('-', 80)
local function enter()
  local page, name, fields, there = arg(), among(arg())
  local put, seen = {'-', long}, {}
  for n, field in ipairs(fields) do
    seen[n] = there[n] or ''
    if not place_of(page, seen[n]) then put[#put + 1] = field; put[#put + 1] = seen[n] .. page end
  end
  call('HSET', name, unpack(put))
  return table.concat(seen)
end
local beyond = string.rep('\\255', 10)
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
    local first, field, places, other, value = key(), arg(), keys(), arg(), arg()
    return call('HEXISTS', first, field) == 1 or found(places, other) == value
  end,
  ['L'] = function()
    local name, token, ms, crawls, crawl, given_up = key(), arg(), arg(), key(), arg(), key()
    local held = call('GET', name)
    if held == token then return true end
    if held or call('HEXISTS', crawls, crawl) == 0 then return false end
    return call('HEXISTS', given_up, crawl) == 0 and lease(name, token, ms)
  end,
  ['0'] = function() return call('EXISTS', key()) == 0 end,
  ['l'] = function() return lease(key(), arg(), arg()) end,
  -- Writes.
  ['h'] = function()
    local place, field, value, listed, counted = key(), arg(), arg(), arg(), arg()
    if call('HSET', place, field, value) == 1 then
      if counted ~= '' then call('INCR', KEYS[3]) end
      if listed ~= '' and call('HLEN', place) == 1 then call('ZADD', KEYS[1], 0, listed) end
    end
  end,
  ['H'] = function()
    local to, many, first, field, value = tonumber(arg()), arg(), base + arg(), arg(), arg()
    rise(to)
    for n = 1, levels() do if n ~= to then call('HDEL', KEYS[first + n - 1], field) end end
    call('HSET', KEYS[first + to - 1], field, value)
  end,
  ['d'] = function()
    local places, field, listed, counted = keys(), arg(), arg(), arg()
    for _, place in ipairs(places) do
      if call('HDEL', place, field) == 1 then
        if counted ~= '' then call('DECR', KEYS[3]) end
        if listed ~= '' and call('EXISTS', place) == 0 then call('ZREM', KEYS[1], listed) end
      end
    end
  end,
  ['s'] = function()
    local places, field, id, seen = keys(), arg(), arg(), arg()
    local value, place = found(places, field)
    if value and string.sub(value, 1, 8) == id and string.sub(value, 9) < seen then
      call('HSET', place, field, id .. seen)
    end
  end,
  ['k'] = function()
    rise(tonumber(arg()))
    local first, many, heads, tail = base + arg(), tonumber(arg()), arg(), arg()
    local size = #heads / many
    for n = 0, many - 1 do
      call('ZADD', KEYS[first + n], 0, string.sub(heads, size * n + 1, size * n + size) .. tail)
    end
  end,
  ['p'] = function() enter() end,
  ['P'] = function() out[#out + 1] = enter() end,
  ['q'] = function()
    local page, name, fields, there = arg(), among(arg())
    local put, gone = {}, {}
    for n, field in ipairs(fields) do
      local all = there[n] or ''
      local place = place_of(page, all)
      if all == page then gone[#gone + 1] = field
      elseif place then
        put[#put + 1] = field
        put[#put + 1] = string.sub(all, 1, place - 1) .. string.sub(all, place + 16)
      end
    end
    if #gone > 0 then call('HDEL', name, unpack(gone)) end
    if #put > 0 then call('HSET', name, unpack(put)) end
  end,
  ['y'] = function()
    local places, member = keys(), arg()
    for _, one in ipairs(places) do call('ZREM', one, member) end
  end,
  ['a'] = function() call('XADD', key(), 'MAXLEN', arg(), '*', 'n', arg()) end,
  ['x'] = function()
    local name, token = key(), arg()
    if call('GET', name) == token then call('DEL', name) end
  end,
  -- Reads.
  ['g'] = function() local value = found(keys(), arg()); out[#out + 1] = value end,
  ['v'] = function()
    local _, _, there = among(arg())
    for n = 1, #there do there[n] = there[n] or '' end
    out[#out + 1] = table.concat(there)
  end,
  ['r'] = function()
    local on, first, many, heads, most, all = math.min(arg(), levels()), base + arg(), tonumber(arg()), arg(), arg(), {}
    local size = #heads / many
    for n = 0, many - 1 do
      local low = '[' .. string.sub(heads, size * n + 1, size * n + size)
      for level = 0, on - 1 do
        local some = call('ZREVRANGEBYLEX', KEYS[first + n + level * many], low .. beyond, low, 'LIMIT', 0, most)
        for m = 1, #some do all[#all + 1] = some[m] end
      end
    end
    out[#out + 1] = all
  end,
  ['e'] = function() out[#out + 1] = call('PTTL', key()) end,
  ['n'] = function() out[#out + 1] = call('GET', KEYS[3]) end,
}
-- A command for each letter of a key that fails on one of another kind. All others are hashes.
local looks = {
  ['/'] = 'ZCARD', k = 'ZCARD', ['+'] = 'XLEN', ['^'] = 'STRLEN', ['#'] = 'STRLEN', L = 'STRLEN', N = 'STRLEN',
}
local letter, is_right, sub = #KEYS[1], {}, string.sub
local function look(first, last)
  for n = first, last do
    local name = KEYS[n]
    if not is_right[name] then
      call(looks[sub(name, letter, letter)] or 'HLEN', name)
      is_right[name] = true
    end
  end
end
local function run(ends, names, writes)
  if writes == '1' then
    look(1, 3)
    look(base + 1, base + names)
  end
  while at < ends do
    local step = arg()
    if steps[step]() == false then return step end
  end
end
local answers = {}
while at <= #ARGV do
  local ends, names, on, writes = at + 4 + ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
  local is_done, why = true, nil
  at, out = at + 4, {1}
  if on > 0 and levels() > on then out = {2, levels()} else is_done, why = pcall(run, ends, names, writes) end
  if is_done then
    if why then out = {0, why} end
  else
    -- As the server says it; one before Redis 7 says first where in the script.
    local said = type(why) == 'table' and why.err or tostring(why)
    out = {err = string.match(said, '%u%u%u+ .*') or 'ERR ' .. said}
    if not string.find(out.err, '^WRONGTYPE') then return out end
  end
  answers[#answers + 1] = out
  at, base = ends, base + names
end
return answers
"""


@cache
def script_digest() -> str:
    """By which the server knows the script."""
    from hashlib import sha1

    return sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
