"""One page a run, made of bytes that a fuzzer chooses: read, normalised and judged, it may fail as a page alone.

    pip install atheris
    python -m tests.fuzz.target [CORPUS] -max_len=20000 -max_total_time=3600 -timeout=5

A finding is any exception but PageError, and any input of 20 kB that takes more than five seconds. Write it down as a
test in tests/page/test_fuzz.py.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

if __name__ == "__main__":
    import atheris

    instrumented = atheris.instrument_imports(include=["trafilatura", "scrapy_neardup"])
else:
    instrumented = nullcontext()
with instrumented:
    from scrapy_neardup.errors import PageError
    from scrapy_neardup.judge.detector import Detector
    from scrapy_neardup.judge.policy import Policy
    from scrapy_neardup.methods import make_method
    from scrapy_neardup.page.extraction import HtmlReader
    from scrapy_neardup.page.limits import is_risky
    from scrapy_neardup.page.source import PageResponse, PageSource
    from scrapy_neardup.state.opening import memory_state

FIELDS = {name: name for name in ("url", "title", "keywords", "description", "text", "html", "part")}
URL = "http://a.example/page"
SOURCE = PageSource(FIELDS, HtmlReader(100_000))


def one(data: bytes) -> str:
    """The verdict on a page, or why there is none: the first byte says what the others are."""
    kind, body = data[:1], data[1:]
    detector = Detector(make_method("cascade", {}), memory_state({}), who="fuzz", policy=Policy(min_letters=5))
    try:
        if kind < b"\x60":
            page = SOURCE.page({}, PageResponse(URL, body), URL)
        elif kind < b"\xc0":
            html = body.decode("utf-8", "surrogatepass" if kind < b"\x80" else "replace")
            is_risky(html)
            page = SOURCE.page({"html": html}, None, URL)
        else:
            parts = body.decode("utf-16-le", "surrogatepass").split("\n\n")
            page = SOURCE.page(dict(zip(FIELDS, ["", *parts[:5]], strict=False)), None, URL)
        return detector.judge_now(page, sealed=False).headline
    except PageError as error:
        return error.reason
    except UnicodeDecodeError:  # what the fuzzer chose is no text at all
        return "no text"


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
