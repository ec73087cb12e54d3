"""Pages that count as soon as they are judged, one after the other: records of files, and what a script asks for."""

from __future__ import annotations

from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.prepared import Prepared
from scrapy_neardup.model import Page, Verdict


class Now:
    """On a state that this process has to itself: what the detector does."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector

    def may_know(self, url: str, body: int) -> bool:
        """As of the detector."""
        return self.detector.may_know(url, body)

    def judge(self, page: Page, *, sealed: bool) -> Verdict:
        """The verdict on a page, which counts from then on, for good if ``sealed``. Raises StoreError."""
        return self.detector.judge_now(page, sealed=sealed)

    def judge_prepared(self, page: Page, prepared: Prepared, *, sealed: bool) -> Verdict:
        """The same of one whose fingerprint was made ahead; of a state that is shared there are none."""
        verdict = self.detector.judge_now(page, sealed=sealed, prepared=prepared)
        # Now, as this page may have been the one that makes a sentence boilerplate.
        self.detector.learn(page, prepared)
        return verdict

    def judge_bytes(self, url: str, site: str, body: int, *, sealed: bool) -> Verdict | None:
        """The same by the bytes of a page alone; None if it has to be read."""
        return self.detector.judge_bytes_now(url, site, body, sealed=sealed)

    def close(self) -> None:
        """No more pages come; the state stays open."""
