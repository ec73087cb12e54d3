"""Programs for the server: conditions, writes and reads that one script applies together or not at all.

A program may be sent again when nobody knows whether it ran: a second run has the same result, or says that the first
one ran. The script declares every key that it touches, and uses no command that Kvrocks lacks.
"""

from __future__ import annotations

from hashlib import sha1
from struct import Struct
from typing import Any, NamedTuple

from scrapy_neardup.server.layout import (
    COUNTER,
    DIRECTORY,
    GIVEN_UP,
    HIGHEST,
    PENDING,
    STREAM,
    Names,
    OnLevels,
    is_posting,
    lease_name,
    level_of,
    names_on,
    pending_name,
    place_of,
)
from scrapy_neardup.state.layout import GENERATIONS

#: A lease is lost: another crawl has it, or somebody has rolled the crawl back. The first word of a failed program.
LEASE, IN_FLIGHT, REGISTER = b"lease", b"in_flight", b"register"
#: The length of the place of a page: see ``PendingPage``.
PLACE = 16
#: An operation of a program: its name in the script, its keys, and its arguments.
Operation = tuple[bytes, Names, tuple[bytes | int, ...]]
#: The number of an operation's keys, before its name.
_COUNT = Struct(">H")


class PendingPage(NamedTuple):
    """A page in flight as all crawls see it. It is filed before it is judged: they must see it in time."""

    #: Its id and its crawl, packed.
    place: bytes
    #: The hash of its URL and its keys, 8 bytes each: others find it under these.
    heads: bytes
    #: Its record.
    packed: bytes

    @property
    def id(self) -> bytes:
        """Its packed id."""
        return self.place[:8]

    @property
    def crawl(self) -> bytes:
        """The packed id of its crawl."""
        return self.place[8:]


class Program:
    """Operations for one state. The script runs the conditions first, then the writes, then the reads."""

    __slots__ = ("_conditions", "_last", "_reads", "_writes", "has_script", "levels")

    def __init__(self, levels: int) -> None:
        """``levels``: how many the caller knows of. If more are in use, the script says so and does nothing."""
        self.levels = levels
        #: Whether the command has the script; else its digest, by which most servers know it.
        self.has_script = False
        self._conditions: list[Operation] = []
        #: The last condition, which also writes: nothing may fail after it.
        self._last: tuple[Operation, ...] = ()
        self._writes: list[Operation] = []
        self._reads: list[Operation] = []

    def command(self, prefix: bytes) -> Any:
        """Return the words of the command that runs it, as a tuple. ``prefix`` stands before the name of each key."""
        names, arguments, pack = [DIRECTORY, HIGHEST, COUNTER], list[bytes | int](), _COUNT.pack
        for operation, where, more in (*self._conditions, *self._last, *self._writes, *self._reads):
            keys = where.names(self.levels) if type(where) is OnLevels else where
            names += keys
            arguments.append(pack(len(keys)) + operation)
            arguments += more
        begin = (b"EVAL", _SCRIPT) if self.has_script else (b"EVALSHA", _DIGEST)
        return (*begin, len(names), *[prefix + name for name in names], self.levels, *arguments)

    @property
    def is_empty(self) -> bool:
        return not (self._conditions or self._last or self._writes or self._reads)

    # Conditions.

    def expect(self, row: bytes, value: bytes | None) -> None:
        """Require that a row has not changed; the row of a URL may have another time, but must name the same page."""
        names, field = place_of(row)
        compared = 0 if value is None else 8 if isinstance(names, OnLevels) else -1
        self._conditions.append((b"expect", names, (field, value or b"", compared)))

    def put_record(self, page: PendingPage, row: bytes, value: bytes) -> None:
        """Write the record of a page, and require that the page is in flight, or that the row already has this value.

        In the second case an earlier run has written, and this one does nothing.
        """
        names, field = place_of(row)
        self._end_conditions((IN_FLIGHT, (pending_name(page.crawl), *names), (page.id, field, value)))

    def expect_lease(self, crawl: bytes, token: bytes, milliseconds: int) -> None:
        """Require that the lease of a crawl is ours, or take it again if it ended and nobody rolls the crawl back."""
        self._conditions.append((LEASE, (lease_name(crawl), b"g", GIVEN_UP), (token, milliseconds, crawl)))

    def expect_no_lease(self, name: bytes) -> None:
        """Require that nobody holds a lease."""
        self._conditions.append((b"no_lease", (name,), ()))

    def take_lease(self, name: bytes, token: bytes, milliseconds: int) -> None:
        """Take or renew a lease; require that nobody else holds it."""
        self._conditions.append((b"take_lease", (name,), (token, milliseconds)))

    def register(self, page: PendingPage) -> None:
        """Add a page in flight, and answer the places of the pages that came before it under its heads.

        The condition is that the page is not registered yet. An earlier run without an answer may have added it, and
        others may have come since, so the answer would be wrong.
        """
        names = pending_name(page.crawl), PENDING
        self._end_conditions((REGISTER, names, (page.place, page.packed, page.heads)))

    def _end_conditions(self, operation: Operation) -> None:
        assert not self._last, "a program has one last condition"
        self._last = (operation,)

    # Writes.

    def put(self, row: bytes, value: bytes, pages: int) -> None:
        """Write a row that is no posting. The level depends on the number of ``pages`` in the state."""
        names, field = place_of(row)
        level = level_of(pages) + 1 if isinstance(names, OnLevels) else 1
        self.levels = max(self.levels, level)
        self._writes.append((b"put", names, (field, value, level)))

    def file(self, keys: bytes, id: bytes, pages: int) -> None:
        """File a page under joined keys."""
        level = level_of(pages)
        self._writes.append((b"file", names_on(b"k", keys, level), (keys, id, level + 1)))

    def delete(self, row: bytes) -> None:
        """Delete a row, if it exists."""
        if is_posting(row):
            self._writes.append((b"unfile", OnLevels(b"k", row[1:-8]), (row[1:],)))
        else:
            names, field = place_of(row)
            if row[:1] == GENERATIONS:  # no crawl, so nobody rolls it back
                names = (row[:1], GIVEN_UP)
            self._writes.append((b"delete", names, (field,)))

    def see(self, row: bytes, id: bytes, seconds: bytes) -> None:
        """Move the time forward at which a URL was last seen, if it still names this page."""
        names, field = place_of(row)
        self._writes.append((b"see", names, (field, id, seconds)))

    def publish(self, entry: bytes, most: int, page: PendingPage | None) -> None:
        """Append to the stream, which keeps ``most`` entries; only while the ``page`` is in flight, so only once."""
        name, id = (pending_name(page.crawl), page.id) if page else (DIRECTORY, b"")
        self._writes.append((b"publish", (STREAM, name), (entry, most, id)))

    def unregister(self, page: PendingPage) -> None:
        self._writes.append((b"unregister", (pending_name(page.crawl), PENDING), (page.place, page.heads)))

    def give_up(self, crawl: bytes) -> None:
        """From now on nobody takes the lease of a crawl again. Its holder would not know which pages are gone."""
        self._writes.append((b"give_up", (GIVEN_UP,), (crawl,)))

    def end_lease(self, name: bytes, token: bytes) -> None:
        """Give back a lease, if it is ours."""
        self._writes.append((b"end_lease", (name,), (token,)))

    # Reads; each adds one answer.

    def get(self, row: bytes) -> None:
        """Answer the value of a row, or None."""
        names, field = place_of(row)
        self._reads.append((b"get", names, (field,)))

    def newest(self, keys: bytes, most: int) -> None:
        """Answer the postings of joined keys in one list: up to ``most`` of each key and level, newest first."""
        self._reads.append((b"newest", OnLevels(b"k", keys), (keys, most)))

    def pending(self, place: bytes) -> None:
        """Answer the record of a page in flight, or None; and the milliseconds for which its crawl has its lease, less
        than 0 without one.
        """
        self._reads.append((b"pending", (pending_name(place[8:]), lease_name(place[8:])), (place[:8],)))

    def in_flight(self, crawl: bytes) -> None:
        """Answer the ids and records of a crawl's pages in flight, one after the other."""
        self._reads.append((b"all", (pending_name(crawl),), ()))

    def entries(self, position: bytes, most: int) -> None:
        """Answer the entries of the stream after a position, each with its position and fields; None for none."""
        self._reads.append((b"entries", (STREAM,), (position, most)))

    def count(self) -> None:
        """Answer the number of pages as digits; None for none."""
        self._reads.append((b"count", (), ()))


#: Answers ``{1, …}``, or ``{0, condition}`` if a condition does not hold, or ``{2, levels}`` if more levels are in use
#: than the program knows. The arguments are the number of levels and the operations: the number of keys with the name,
#: and its arguments.
_SCRIPT = b"""\
local call, sub, byte = redis.call, string.sub, string.byte
local DIRECTORY, HIGHEST, COUNTER = KEYS[1], KEYS[2], KEYS[3]
local at, answers = 2, {1}
local function arg() at = at + 1; return ARGV[at - 1] end
local function answer(value) answers[#answers + 1] = value end
-- The name of a key without the prefix of the state.
local function name_of(key) return sub(key, #DIRECTORY - 1) end

-- An earlier run has written all. Others may have written since, so nothing is written again.
local DONE = 'done'

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
local function put(key, field, value)
  if call('HSET', key, field, value) == 0 then return end
  local name = name_of(key)
  local letter = sub(name, 1, 1)
  if letter == 'r' then call('INCR', COUNTER) end
  if letter ~= 'u' and call('HLEN', key) == 1 then call('ZADD', DIRECTORY, 0, name) end
end
local function key_at(keys, n) return sub(keys, 5 * n + 1, 5 * n + 5) end
-- Members of the sorted set that begin with a head, newest first.
local BEYOND = string.rep('\\255', 16)
local function newest(key, head, most)
  return call('ZREVRANGEBYLEX', key, '[' .. head .. BEYOND, '[' .. head, 'LIMIT', 0, most)
end
-- Stands before the places in flight under a head. Redis packs a hash of short values, and then reads it from its start
-- for each field; with longer values it is a table.
local TABLE = string.rep(' ', 64)
-- The heads, 8 bytes each, and the places in flight under each of them, 16 bytes each.
local function pending(key, heads)
  local names = {}
  for n = 1, #heads, 8 do names[#names + 1] = sub(heads, n, n + 7) end
  return names, call('HMGET', key, unpack(names))
end

local function apply(operation, first, count)
  if operation == 'expect' then
    local field, value, compared = arg(), arg(), tonumber(arg())
    local found = find(first, count, field)
    if compared == 0 then return not found end
    return found and sub(found, 1, compared) == sub(value, 1, compared)
  elseif operation == 'in_flight' then
    local id, row, value = arg(), arg(), arg()
    if call('HEXISTS', KEYS[first], id) == 0 then return call('HGET', KEYS[first + 1], row) == value and DONE end
    put(KEYS[first + 1], row, value)
  elseif operation == 'lease' then
    local token, milliseconds, crawl = arg(), arg(), arg()
    local holder = call('GET', KEYS[first])
    if holder then return holder == token end
    local is_known, is_given_up = call('HEXISTS', KEYS[first + 1], crawl), call('HEXISTS', KEYS[first + 2], crawl)
    if is_known == 0 or is_given_up == 1 then return false end
    return take_lease(KEYS[first], token, milliseconds)
  elseif operation == 'no_lease' then
    return call('EXISTS', KEYS[first]) == 0
  elseif operation == 'take_lease' then
    return take_lease(KEYS[first], arg(), arg())
  elseif operation == 'register' then
    local place, record, heads = arg(), arg(), arg()
    if call('HSETNX', KEYS[first], sub(place, 1, 8), record) == 0 then return false end
    local names, held = pending(KEYS[first + 1], heads)
    local rows = {}
    for n, name in ipairs(names) do
      held[n] = sub(held[n] or '', #TABLE + 1)
      rows[2 * n - 1], rows[2 * n] = name, TABLE .. held[n] .. place
    end
    call('HSET', KEYS[first + 1], unpack(rows))
    answer(table.concat(held))
  elseif operation == 'put' then
    local field, value, level = arg(), arg(), tonumber(arg())
    use_level(level)
    for n = 1, count do if n ~= level then call('HDEL', KEYS[first + n - 1], field) end end
    put(KEYS[first + level - 1], field, value)
  elseif operation == 'delete' then
    local field = arg()
    for n = first, first + count - 1 do
      if call('HDEL', KEYS[n], field) == 1 then
        local name = name_of(KEYS[n])
        if sub(name, 1, 1) == 'r' then call('DECR', COUNTER) end
        if call('EXISTS', KEYS[n]) == 0 then call('ZREM', DIRECTORY, name) end
      end
    end
  elseif operation == 'see' then
    local field, id, seconds = arg(), arg(), arg()
    local value, key = find(first, count, field)
    if value and sub(value, 1, 8) == id and sub(value, 9) < seconds then call('HSET', key, field, id .. seconds) end
  elseif operation == 'file' then
    local keys, page = arg(), arg()
    use_level(tonumber(arg()))
    for n = 0, count - 1 do call('ZADD', KEYS[first + n], 0, key_at(keys, n) .. page) end
  elseif operation == 'unfile' then
    local posting = arg()
    for n = first, first + count - 1 do call('ZREM', KEYS[n], posting) end
  elseif operation == 'publish' then
    local entry, most, id = arg(), arg(), arg()
    if id == '' or call('HEXISTS', KEYS[first + 1], id) == 1 then
      call('XADD', KEYS[first], 'MAXLEN', most, '*', 'n', entry)
    end
  elseif operation == 'unregister' then
    local place, heads = arg(), arg()
    call('HDEL', KEYS[first], sub(place, 1, 8))
    local names, held = pending(KEYS[first + 1], heads)
    local gone = {}
    for n, name in ipairs(names) do
      local rest = ''
      for at = #TABLE + 1, #(held[n] or ''), 16 do
        local other = sub(held[n], at, at + 15)
        if other ~= place then rest = rest .. other end
      end
      if rest == '' then
        gone[#gone + 1] = name
      else
        call('HSET', KEYS[first + 1], name, TABLE .. rest)
      end
    end
    if #gone > 0 then call('HDEL', KEYS[first + 1], unpack(gone)) end
  elseif operation == 'give_up' then
    call('HSET', KEYS[first], arg(), '')
  elseif operation == 'end_lease' then
    if call('GET', KEYS[first]) == arg() then call('DEL', KEYS[first]) end
  elseif operation == 'get' then
    answer((find(first, count, arg())))
  elseif operation == 'newest' then
    local keys, most, found = arg(), arg(), {}
    local many = #keys / 5
    for n = 0, many - 1 do
      local head = key_at(keys, n)
      for key = first + n, first + count - 1, many do  -- on each level
        for _, member in ipairs(newest(KEYS[key], head, most)) do found[#found + 1] = member end
      end
    end
    answer(found)
  elseif operation == 'pending' then
    answer(call('HGET', KEYS[first], arg()))
    answer(call('PTTL', KEYS[first + 1]))
  elseif operation == 'all' then
    answer(call('HGETALL', KEYS[first]))
  elseif operation == 'entries' then
    local position, most = arg(), arg()
    local found = call('XREAD', 'COUNT', most, 'STREAMS', KEYS[first], position)
    answer(found and found[1][2])
  elseif operation == 'count' then
    answer(call('GET', COUNTER))
  end
end

local function run()
  if levels() > tonumber(ARGV[1]) then return {2, levels()} end
  local first = 4
  while at <= #ARGV do
    local head = arg()
    local high, low = byte(head, 1, 2)
    local name, count = sub(head, 3), high * 256 + low
    local result = apply(name, first, count)
    first = first + count
    if result == false then return {0, name} end
    if result == DONE then return answers end
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
_DIGEST = sha1(_SCRIPT, usedforsecurity=False).hexdigest()
