"""What the ends of a page's items come to, without a crawl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider

from scrapy_neardup.crawl.ledger import Ledger
from scrapy_neardup.crawl.visits import End, JudgedPage, ResponseItems
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Fingerprint, Kind, Verdict
from scrapy_neardup.state.record import Record
from tests.crawl.parts import Exporter, Slot, notes, outage

ID = 7
ENDS = {"s": End.SCRAPED, "d": End.DROPPED, "f": End.FAILED}


def judged_page() -> JudgedPage:
    record = Record(ID, "http://a.example/", ID)
    verdict = Verdict(Kind.UNIQUE, record.url, ID)
    return JudgedPage(verdict, Reservation(verdict, Fingerprint((), b""), record))


@dataclass
class Book:
    """Writes down what the detector is told, and fails where it is told to."""

    told: list[Any] = field(default_factory=list)
    error: StoreError | None = None

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        self._take("commit", reservation.record.id, sealed)

    def release(self, reservation: Reservation) -> None:
        self._take("release", reservation.record.id)

    def roll_back(self, id: int) -> None:
        self._take("roll_back", id)

    def seal(self, ids: Sequence[int]) -> None:
        self._take("seal", *ids)

    def _take(self, *what: Any) -> None:
        if self.error is not None:
            raise self.error
        self.told.append(what)


class Desk:
    """A ledger with its book and its feeds."""

    def __init__(self, *slots: Slot) -> None:
        self.book, self.exporter, self.notes = Book(), Exporter(list(slots)), notes()
        self.outage = outage(self.notes)
        self.ledger = Ledger(cast(Detector, self.book), self.notes, self.outage, self.exporter.as_scrapys())
        self.page = judged_page()

    @property
    def rolled_back(self) -> int:
        return int(self.notes.stats.get_value("neardup/rolled_back", 0))

    def play(self, events: str) -> list[Any]:
        for event in events:
            if event == "e":
                self.page.in_pipelines += 1
            else:
                feeds = self.ledger.feeds.export({}, Spider("any")) if event == "s" else frozenset()
                self.ledger.end(self.page, ENDS[event], feeds)
        return self.book.told


KEPT, RELEASED, ROLLED_BACK = ("commit", ID, True), ("release", ID), ("roll_back", ID)


def test_a_page_counts_once_no_item_is_in_the_pipelines_if_one_came_through_and_none_failed() -> None:
    for events, expected in [
        ("es", [KEPT]),
        ("ed", [RELEASED]),
        ("ef", [RELEASED]),
        ("ees", []),
        ("eesd", [KEPT]),
        ("eeds", [KEPT]),
        ("eess", [KEPT]),
        ("eedd", [RELEASED]),
        ("eesf", [RELEASED]),
        ("eefs", [RELEASED]),
        ("eses", [KEPT]),
        ("esed", [KEPT]),
        ("esef", [KEPT, ROLLED_BACK]),
        ("esefes", [KEPT, ROLLED_BACK]),
        ("edes", [RELEASED]),
        ("eedes", []),
    ]:
        desk = Desk()
        assert desk.play(events) == expected
        assert desk.rolled_back == sum(step is not KEPT for step in expected)


@given(st.lists(st.sampled_from("esdf")))
def test_a_page_is_kept_and_rolled_back_at_most_once_and_stays_lost(events: list[str]) -> None:
    desk, items = Desk(), 0
    for event in events:
        if event == "e" or items:
            items += 1 if event == "e" else -1
            before = len(desk.book.told)
            desk.play(event)
            assert items == 0 or len(desk.book.told) == before
    assert desk.book.told in ([], [KEPT], [RELEASED], [KEPT, ROLLED_BACK])
    assert desk.page.is_lost is bool({RELEASED, ROLLED_BACK} & set(desk.book.told))


def test_a_feed_that_was_stored_before_the_page_was_kept_does_not_hold_it_back() -> None:
    desk = Desk(first := Slot())
    desk.play("ees")
    desk.exporter.slots = []
    first.store(None)
    assert desk.play("d") == [("commit", ID, False), ("seal", ID)]


def test_a_page_that_items_share_is_sealed_when_the_last_of_them_has_ended() -> None:
    for feeds in [0, 1]:
        desk = Desk(*(slots := [Slot() for _ in range(feeds)]))
        desk.page.response_items = items = ResponseItems(is_complete=False)
        for _ in range(2):
            items.announced += 1
            desk.play("es")
            for slot in slots:  # a batch for each item
                slot.store(None)
            desk.exporter.slots = slots = [Slot() for _ in range(feeds)]
            items.end_item()
            assert desk.book.told == [("commit", ID, False)], "another item may come"
        items.announced += 1
        items.complete()
        desk.play("ed")
        assert desk.book.told == [("commit", ID, False)], "nobody was told yet that it is over"
        items.end_item()
        assert desk.book.told[1:] == [("seal", ID)], feeds


def test_a_state_that_fails_is_reported_and_nothing_is_raised() -> None:
    for events in ["es", "ed", "esef"]:
        desk = Desk()
        desk.play(events[:-1])
        desk.book.error = StoreError("The disk is full.")
        desk.play(events[-1])
        assert desk.outage.happened, events
        assert desk.notes.stats.get_value("neardup/errors") == 1, events


def test_a_ledger_that_is_closed_leaves_the_state_alone() -> None:
    desk = Desk(slot := Slot())
    desk.play("es")
    desk.ledger.close()
    slot.store(None)
    assert desk.book.told == [("commit", ID, False)]
