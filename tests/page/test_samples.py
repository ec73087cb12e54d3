"""Sample digests of readers, segmenters and converters change only with their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_neardup.hashing import compiled
from scrapy_neardup.page import extraction, reading
from scrapy_neardup.page.extraction import SAMPLE_PAGES, analyse, reader_sample
from scrapy_neardup.text import samples as texts
from scrapy_neardup.text.samples import converter_sample, segmenter_sample
from scrapy_neardup.text.tokens import segmenter
from tests.processes import answer_with_hash_seed

#: Cached before any test patches a reader.
READ, CUT = reader_sample(), segmenter_sample()
fresh: Callable[[], str] = reader_sample.__wrapped__
cut_anew: Callable[[], str] = segmenter_sample.__wrapped__


def test_a_sample_is_the_same_in_every_process_and_has_all_readers() -> None:
    code = "import json\nfrom scrapy_neardup.page.extraction import *\nfrom scrapy_neardup.text.samples import *\n"
    assert answer_with_hash_seed("1", f"{code}print(json.dumps([reader_sample(), segmenter_sample()]))") == [READ, CUT]
    assert len(READ) == len(CUT) == 16
    read = [analyse(html, "https://a.example/", max_html=100_000).page for html in SAMPLE_PAGES]
    assert {page.reader for page in read} == {"article", "prose"}
    assert all(page.text and page.title for page in read)


CHANGES: list[Callable[[str], str]] = [
    lambda text: text.replace("船工们说", "船工说"),
    lambda text: "\n".join(text.splitlines()[:-1]),
    lambda text: f"分享到：微信 微博\n{text}",
    lambda text: text.replace("wait(12)", ""),
]


def test_another_result_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reading.trafilatura_text
    for change in CHANGES:
        with monkeypatch.context() as patched:
            patched.setattr(
                reading, "trafilatura_text", lambda root, change=change, **named: change(real(root, **named) or "")
            )
            assert fresh() != READ

    for field in ("headline", "links"):

        def other(html: str, url: str, field: Any = field, **named: Any) -> Any:
            return Mock(page=replace(analyse(html, url, **named).page, **{field: "other"}))  # type: ignore[arg-type]

        monkeypatch.setattr(extraction, "analyse", other)
        assert fresh() != READ


def test_a_digest_changes_with_our_version_and_not_with_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reading.trafilatura_text
    monkeypatch.setattr(reading, "trafilatura_text", lambda root, **named: f"{real(root, **named) or ''}\n")
    monkeypatch.setattr(extraction, "version", lambda name: "99.9")
    assert fresh() == READ
    monkeypatch.setattr(extraction, "VERSION", extraction.VERSION + 1)
    assert fresh() != READ


def test_both_segmenters_have_one_digest_and_another_one_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "kernels", None)
    assert cut_anew() == CUT
    monkeypatch.setattr(segmenter(), "_cut", list)
    assert cut_anew() != CUT


def test_the_converter_has_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opencc")
    assert len(converter_sample()) == 16
    monkeypatch.setattr(texts, "simplify", lambda text: text)
    assert converter_sample.__wrapped__() != converter_sample()
