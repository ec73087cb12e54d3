"""Pages are judged in the order in which they came, whichever is read first, but for one that takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
import scrapy
from packaging.version import Version

from scrapy_neardup.crawl import turns as module
from scrapy_neardup.crawl.turns import Turn, Turns

pytestmark = pytest.mark.skipif(
    Version(scrapy.__version__) < Version("2.15"), reason="older versions of Scrapy wait with a reactor alone"
)


async def _judged(line: Turns, delays: Sequence[float], begins: Sequence[bool] = ()) -> list[int]:
    """The pages by their turns in the line, as they are judged; each takes so long to be read."""
    order: list[int] = []

    async def one(number: int, turn: Turn, delay: float) -> None:
        try:
            if not begins or begins[number]:
                turn.begin()
            await asyncio.sleep(delay)
            if delay < 0:
                raise ValueError
            await turn.comes()
            order.append(number)
        finally:
            turn.leave()

    turns = [line.join() for _ in delays]
    tasks = [one(number, turns[number], delay) for number, delay in enumerate(delays)]
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(line) == 0
    return order


@pytest.mark.parametrize(
    ("patience", "delays", "begins", "order"),
    [
        (60.0, [0.2, 0.0, 0.1, 0.05, 0.0], (), [0, 1, 2, 3, 4]),
        (60.0, [0.2, *[0.0] * 3_000], (), list(range(3_001))),
        (60.0, [-1, 0.1, -1, 0.0], (), [1, 3]),
        (0.2, [2.0, 0.1, 0.0, 2.2, 0.0], (), [1, 2, 4, 0, 3]),
        (0.1, [0.5, 0.0], (False, True), [0, 1]),
    ],
    ids=[
        "the first is read last",
        "many wait for one",
        "one that fails leaves the line",
        "one that takes long is overtaken",
        "one that waits for a process is not overtaken",
    ],
)
def test_pages_are_judged_in_the_order_in_which_they_came(
    monkeypatch: pytest.MonkeyPatch, patience: float, delays: list[float], begins: Sequence[bool], order: list[int]
) -> None:
    monkeypatch.setattr(module, "PATIENCE", patience)
    assert asyncio.run(_judged(Turns(), delays, begins)) == order


@pytest.mark.parametrize("comes_through", [True, False])
async def test_the_next_one_waits_for_the_item_of_the_one_before_if_that_comes_through_at_once(
    comes_through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SOON", 60.0 if comes_through else 0.1)
    line, settled = Turns(), list[Callable[[], None]]()
    first, second = line.join(), line.join()
    first.stay_until(settled.append)
    first.leave()  # it has nothing more to do, and stays all the same
    waiting = asyncio.create_task(second.comes())
    await asyncio.sleep(0.02)
    assert not waiting.done()
    if comes_through:
        settled[0]()
    await asyncio.wait_for(waiting, 30)
    second.stay_until(settled.append)
    second.leave()  # at once, as nobody waits
    assert (len(line), len(settled)) == (0, 1)


def test_one_that_was_read_is_not_overtaken_though_the_loop_was_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    line = Turns()
    first, second = line.join(), line.join()
    first.begin()

    async def run() -> bool:
        waiting = asyncio.create_task(second.comes())
        await asyncio.sleep(0.02)
        first.end()  # by a thread, of which the loop will hear
        await asyncio.sleep(0.4)
        is_waiting = not waiting.done()
        first.leave()
        await waiting
        return is_waiting

    assert asyncio.run(run())
