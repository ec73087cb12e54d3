"""Programs that come at one time go to the server together, and each has its own answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from math import inf
from typing import Any
from unittest.mock import Mock

import pytest
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.connection import Address, Link, Slot, Unlocated
from scrapy_neardup.server.layout import DIRECTORY
from scrapy_neardup.server.program import Program
from tests.processes import wait_until
from tests.server.redis_server import Server


class Sender:
    """One that asks for one row after another."""

    def __init__(self, url: str) -> None:
        self.connection = Link(url)
        self.link = AsyncLink(self.connection)

    def ask(self, number: int) -> asyncio.Future[list[Any]]:
        """Write a row, and read it."""
        program, row = self.connection.program(), b"m%d" % number
        program.put(row, b"value of " + row, 1)
        program.get(row)
        return asyncio.ensure_future(self.link.run(program))

    async def ask_all(self, *numbers: int) -> list[Any]:
        return list(await asyncio.gather(*map(self.ask, numbers), return_exceptions=True))


def answers(*numbers: int) -> list[list[Any]]:
    return [[1, b"value of m%d" % number] for number in numbers]


@pytest.fixture
def sender(redis_server: Server) -> Iterator[Sender]:
    found = Sender(redis_server.url(redis_server.new_state()))
    yield found
    found.connection.close()


def count_sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of commands that go together."""
    counted, send = list[int](), AbstractConnection.send_packed_command

    async def count(connection: AbstractConnection, commands: list[bytes], **options: Any) -> None:
        counted.append(len(commands))
        await send(connection, commands, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", count)
    return counted


async def test_what_is_there_at_one_moment_goes_together(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    await sender.ask(0)
    counted = count_sent(monkeypatch)
    assert await sender.ask_all(*range(40)) == answers(*range(40))
    assert counted == [40]


async def test_no_program_waits_for_the_answers_to_earlier_ones(
    sender: Sender, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server is 50 ms away, pages would wait half as long again."""
    await sender.ask(0)
    counted, tasks = count_sent(monkeypatch), list[asyncio.Future[list[Any]]]()
    redis_server.pause(0.8)
    for number in range(3):
        tasks.append(sender.ask(number))
        await asyncio.sleep(0.05)
    assert counted == [1, 1, 1]
    assert list(await asyncio.gather(*tasks)) == answers(0, 1, 2)


async def test_a_server_that_does_not_know_the_script_gets_it(sender: Sender, redis_server: Server) -> None:
    await sender.ask(0)
    redis_server.client.script_flush()
    assert await sender.ask_all(*range(40)) == answers(*range(40))


async def test_each_program_has_its_own_answer_though_others_fail_or_are_cancelled(
    sender: Sender, redis_server: Server
) -> None:
    redis_server.client.set(sender.connection.prefix + b"x", "a string is no hash")
    wrong = sender.connection.program()
    wrong.get(b"x1")
    tasks = [sender.ask(1), asyncio.ensure_future(sender.link.run(wrong)), sender.ask(2), sender.ask(3)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [found[0], found[3]] == answers(1, 3)
    assert isinstance(found[2], asyncio.CancelledError)
    assert isinstance(found[1], StoreError)
    assert "refuses a command" in str(found[1])


async def test_programs_that_the_server_refuses_for_now_hold_up_no_others(
    sender: Sender, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do later programs wait, which need no memory. The outage is told once, though the server answers these."""
    told = list[str]()
    monkeypatch.setattr(sender.connection, "patient_thread", 0)
    monkeypatch.setattr(sender.connection, "on_outage", told.append)
    await sender.ask(0)
    read, refused, refuses = sender.connection.read_answer, list[Program](), True

    def read_answer(program: Program, found: Any) -> Any:
        if refuses and program in refused:
            raise OutOfMemoryError
        return read(program, found)

    monkeypatch.setattr(sender.connection, "read_answer", read_answer)
    refused.append(sender.connection.program())
    refused[0].count()
    waiting = asyncio.ensure_future(sender.link.run(refused[0]))
    for number in range(6):
        assert await asyncio.wait_for(sender.ask_all(number, 9), 3) == answers(number, 9)
    assert told == ["OutOfMemoryError"]
    refuses = False
    assert (await asyncio.wait_for(waiting, 3))[0] == 1
    assert told == ["OutOfMemoryError", ""]


async def test_a_moved_node_is_noticed_though_the_connection_to_the_former_one_is_open(
    sender: Sender, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_neardup.server.asynchronous._LOOK", 0.05)
    places = iter(["here", "here", "there"])

    async def locate(link: AsyncLink) -> str:
        return next(places, "there")

    monkeypatch.setattr(AsyncLink, "_locate", locate)
    await sender.ask(0)
    connections = [client["id"] for client in redis_server.client.client_list()]
    await asyncio.sleep(0.3)
    assert await sender.ask_all(1) == answers(1)
    assert {client["id"] for client in redis_server.client.client_list()} - set(connections)
    assert sender.connection.breaks == 1


async def test_where_the_way_there_breaks_each_is_sent_again(sender: Sender, redis_server: Server) -> None:
    await sender.ask(0)
    tasks = [sender.ask(number) for number in range(5)]
    redis_server.client.client_kill_filter(_type="normal", skipme=True)
    assert list(await asyncio.gather(*tasks)) == answers(*range(5))
    assert sender.connection.breaks == 1


async def test_the_next_connection_after_an_idle_one_may_lead_to_another_server(
    sender: Sender, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Link, "pause_after", None)  # no answer is lost, so nothing is tried again
    for number in range(2):
        assert [await sender.ask(number)] == answers(number)
        redis_server.client.client_kill_filter(_type="normal", skipme=True)
        await asyncio.sleep(0.05)
    assert sender.connection.breaks == 2


async def test_what_was_answered_before_the_connection_broke_is_not_sent_again(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sender.ask(0)
    counted, read, fails = count_sent(monkeypatch), AbstractConnection.read_response, iter([False, False, True])

    async def read_response(connection: AbstractConnection, **options: Any) -> Any:
        if next(fails, False):
            raise RedisConnectionError
        return await read(connection, **options)

    monkeypatch.setattr(AbstractConnection, "read_response", read_response)
    assert await sender.ask_all(*range(5)) == answers(*range(5))
    assert counted[0] == 5 > counted[-1]


async def test_after_an_error_that_nobody_foresaw_each_program_has_its_own_answer(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sender.ask(0)
    read, fails = AbstractConnection.read_response, iter([False, True])

    async def read_response(connection: AbstractConnection, **options: Any) -> Any:
        if next(fails, False):
            raise MemoryError
        return await read(connection, **options)

    monkeypatch.setattr(AbstractConnection, "read_response", read_response)
    assert MemoryError in map(type, await sender.ask_all(*range(3)))
    assert await sender.ask_all(7, 8) == answers(7, 8)


async def test_nobody_waits_for_a_connection_that_is_closed(sender: Sender, redis_server: Server) -> None:
    await sender.ask(0)
    redis_server.pause(0.8)
    tasks = [sender.ask(number) for number in range(2)]
    await asyncio.sleep(0.05)
    await sender.link.close()
    for task in (*tasks, sender.ask(3)):
        with pytest.raises(StoreError, match="is closed"):
            await asyncio.wait_for(task, 5)


async def test_what_a_cancelled_caller_sent_is_not_sent_again(sender: Sender, redis_server: Server) -> None:
    """Else a page may be registered after its judgement was cancelled and has removed it."""
    await sender.ask(0)
    redis_server.client.script_flush()
    redis_server.pause(0.8)
    task = sender.ask(1)
    await asyncio.sleep(0.05)
    task.cancel()
    assert await sender.ask_all(2) == answers(2)
    assert sender.connection.ask(Program.get, b"m1") is None


async def test_a_silent_server_is_retried(
    sender: Sender, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_neardup.server.asynchronous.SECONDS", 1.0)
    monkeypatch.setattr("scrapy_neardup.server.asynchronous._LOOK", 0.1)
    await sender.ask(0)
    redis_server.pause(1.5)
    tasks = [sender.ask(number) for number in range(5)]
    assert list(await asyncio.gather(*tasks)) == answers(*range(5))
    assert sender.connection.breaks > 0


async def test_the_loop_goes_on_while_a_thread_looks_for_the_node(
    sender: Sender, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sender.ask(0)
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    class Slow(Slot):
        def locate(self) -> Address:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(1)
            raise Unlocated

    monkeypatch.setattr(sender.connection, "locator", Slow([], "", {}))
    looks = asyncio.create_task(asyncio.to_thread(sender.connection.locate))
    await begun.wait()
    started = loop.time()
    task = sender.ask(1)
    redis_server.client.client_kill_filter(_type="normal", skipme=True)
    await asyncio.sleep(0.1)
    assert loop.time() - started < 0.8
    monkeypatch.setattr(sender.connection, "locator", None)
    await asyncio.gather(looks, task, return_exceptions=True)


def test_who_knows_fewer_levels_than_are_in_use_asks_again(redis_server: Server) -> None:
    """What others file under a key where many pages are is found, by whoever thinks that there are few."""
    key, ids = bytes(range(5)), [n.to_bytes(8, "big") for n in (1, 2)]
    url = redis_server.url(redis_server.new_state())
    links = [Link(url) for _ in range(3)]
    for link, id, pages in zip(links, ids, (10, 1_000_000), strict=False):
        program = link.program()
        program.file(key, id, pages)
        link.run(program)
    assert [link.ask(Program.newest, key, 9) for link in links] == [[key + ids[0], key + ids[1]]] * 3
    assert [link.levels for link in links] == [3, 3, 3]
    assert not redis_server.client.exists(links[0].prefix + DIRECTORY)
    for link in links:
        link.close()


def test_a_request_that_runs_while_the_state_moves_gets_its_answer(redis_server: Server) -> None:
    """Another thread sees the move, and leaves the connection that is in use open."""
    with closing(Link(redis_server.url(redis_server.new_state()))) as link:
        client, begun, found = link._client, threading.Semaphore(0), []
        link.locator, link.address = Mock(lasts=99), ("first.example", 1)
        link.locator.locate.return_value = link.address

        def wait_for_row(client: Any) -> Any:
            begun.release()
            return client.blpop("moved", timeout=5)

        thread = threading.Thread(target=lambda: found.append(link.call(wait_for_row)))
        thread.start()
        begun.acquire()
        wait_until(lambda: redis_server.client.info("clients")["blocked_clients"], "the request waits")
        link.locator.locate.return_value = ("second.example", 2)
        link._located = -inf
        link.locate()
        assert link._client is not client
        redis_server.client.rpush("moved", "row")
        thread.join()
        assert found == [(b"moved", b"row")]
        assert not begun.acquire(blocking=False), "it was sent once"
