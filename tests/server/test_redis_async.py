"""Programs that come at one time go to the server in one pipeline, and each has its own answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.program import Program
from tests.server.redis_server import Server


@pytest.fixture
def url(redis_server: Server) -> str:
    return redis_server.url(redis_server.new_state())


def asks(link: AsyncLink, name: bytes, field: bytes) -> Program:
    program = link.program()
    program.set_field(name, field, b"value of " + field)
    program.get_field(name, field)
    return program


def pipelines_of(link: AsyncLink) -> list[int]:
    """How many programs each pipeline has; grows."""
    found, execute = list[int](), link._execute

    async def counted(programs: list[Program]) -> list[Any]:
        found.append(len(programs))
        return await execute(programs)

    link.__dict__["_execute"] = counted
    return found


async def pieces_of(link: AsyncLink, programs: list[Program]) -> tuple[list[Any], list[int]]:
    """The answers, and how many programs each pipeline had."""
    pieces = pipelines_of(link)
    found = await asyncio.gather(*map(link.run, programs), return_exceptions=True)
    await link.close()
    return list(found), pieces


def test_what_is_there_at_one_moment_goes_in_one_pipeline(url: str, redis_server: Server) -> None:
    """Sixteen at most; also where the server does not know the script."""

    async def work() -> None:
        link = AsyncLink(url)
        programs = [asks(link, b"a", bytes([n])) for n in range(40)]
        found, pieces = await pieces_of(link, programs)
        assert found == [[1, b"value of " + bytes([n])] for n in range(40)]
        assert pieces == [16, 16, 8]

    for flush in (False, True):
        if flush:
            redis_server.client.script_flush()
        asyncio.run(work())


async def test_one_that_fails_is_no_failure_of_the_others(url: str) -> None:
    link = AsyncLink(url)
    await link.run(asks(link, b"a", b"0"))
    wrong = link.program()
    wrong.append(b"a", 9, b"a hash is no stream")
    found, pieces = await pieces_of(link, [asks(link, b"a", b"1"), wrong, asks(link, b"a", b"2")])
    assert pieces == [3]
    assert [found[0], found[2]] == [[1, b"value of 1"], [1, b"value of 2"]]
    assert isinstance(found[1], StoreError)
    assert "refuses a command" in str(found[1])


async def test_where_the_way_there_breaks_each_is_sent_again(url: str, redis_server: Server) -> None:
    link = AsyncLink(url)
    programs = [asks(link, b"a", bytes([n])) for n in range(5)]
    await link.run(programs[0])
    redis_server.client.client_kill_filter(_type="normal", skipme=True)
    found, pieces = await pieces_of(link, programs)
    assert found == [[1, b"value of " + bytes([n])] for n in range(5)]
    assert sum(pieces) >= 5


async def test_a_connection_that_was_idle_and_is_gone_is_no_lost_answer(url: str, redis_server: Server) -> None:
    link = AsyncLink(url)
    for n in range(2):
        assert await link.run_once(asks(link, b"a", bytes([n]))) == [1, b"value of " + bytes([n])]
        redis_server.client.client_kill_filter(_type="normal", skipme=True)
        await asyncio.sleep(0.05)
    assert link.breaks == 0
    await link.close()


async def test_who_is_cancelled_takes_no_answer_from_others(url: str) -> None:
    link = AsyncLink(url)
    await link.run(asks(link, b"a", b"0"))
    tasks = [asyncio.ensure_future(link.run(asks(link, b"a", bytes([n])))) for n in range(6)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in found] == [asyncio.CancelledError, list] * 3
    assert found[5] == [1, b"value of " + bytes([5])]
    await link.close()


async def test_who_knows_fewer_levels_than_are_in_use_asks_again(url: str) -> None:
    """What others file under a key where many pages are is found, by whoever thinks that there are few."""
    key, ids = bytes(range(5)), [n.to_bytes(8, "big") for n in (1, 2)]
    links = [AsyncLink(url) for _ in range(3)]
    for link, id, pages in zip(links, ids, (10, 1_000_000), strict=False):
        program = link.program()
        program.put(b"k" + key + id, b"", pages)
        await link.run(program)
    reads = []
    for link in links:
        program = link.program()
        program.newest([key], 9)
        reads.append((program, await link.run(program)))
    assert [found for _, found in reads] == [[1, [key + ids[0], key + ids[1]]]] * 3
    assert [link._link.levels for link in links] == [3, 3, 3]
    assert {program.levels for program, _ in reads} == {3}
    for link in links:
        await link.close()
