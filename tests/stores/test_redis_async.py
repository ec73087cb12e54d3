"""Programs of one moment go to the server in one piece, and each has an answer of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.redis_async import AsyncLink
from scrapy_neardup.stores.redis_program import Program
from tests.stores.redis_server import Server


@pytest.fixture
def url(redis_server: Server) -> str:
    return redis_server.url(redis_server.new_state())


def asks(link: AsyncLink, name: bytes, field: bytes) -> Program:
    program = link.program()
    program.note(name, field, b"value of " + field)
    program.field(name, field)
    return program


async def pieces_of(link: AsyncLink, programs: list[Program]) -> tuple[list[Any], list[int]]:
    """The answers, and of how many commands each piece was."""
    pieces, send = list[int](), link._line._send

    def counted(piece: Any) -> None:
        pieces.append(len(piece.programs))
        send(piece)

    link._line._send = counted  # type: ignore[method-assign]
    found = await asyncio.gather(*map(link.run, programs), return_exceptions=True)
    await link.close()
    return list(found), pieces


def test_what_is_there_at_one_moment_goes_in_one_piece(url: str, redis_server: Server) -> None:
    """Sixteen at most; also where the server has to be told the script first."""

    async def work() -> None:
        link = AsyncLink(url, "NEARDUP_STORE")
        programs = [asks(link, b"a", bytes([n])) for n in range(40)]
        found, pieces = await pieces_of(link, programs)
        assert found == [[1, b"value of " + bytes([n])] for n in range(40)]
        assert (pieces[:2], pieces[-1]) == ([16, 16], 8)

    for flush in (False, True):
        if flush:
            redis_server.client.script_flush()
        asyncio.run(work())


def test_one_that_fails_is_no_failure_of_the_others(url: str) -> None:
    async def work() -> None:
        link = AsyncLink(url, "NEARDUP_STORE")
        await link.run(asks(link, b"a", b"0"))
        wrong = link.program()
        wrong.append(b"a", 9, b"a hash is no stream")
        found, pieces = await pieces_of(link, [asks(link, b"a", b"1"), wrong, asks(link, b"a", b"2")])
        assert pieces == [3]
        assert [found[0], found[2]] == [[1, b"value of 1"], [1, b"value of 2"]]
        assert isinstance(found[1], StoreError)
        assert "refuses what was asked" in str(found[1])

    asyncio.run(work())


def test_where_the_way_there_breaks_each_is_sent_again(url: str, redis_server: Server) -> None:
    async def work() -> None:
        link = AsyncLink(url, "NEARDUP_STORE")
        programs = [asks(link, b"a", bytes([n])) for n in range(5)]
        await link.run(programs[0])
        redis_server.client.client_kill_filter(_type="normal", skipme=True)
        found, pieces = await pieces_of(link, programs)
        assert found == [[1, b"value of " + bytes([n])] for n in range(5)]
        assert sum(pieces) >= 5

    asyncio.run(work())
