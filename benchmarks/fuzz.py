"""Drive the reading and judging of pages by a coverage-guided fuzzer.

    pip install atheris
    python benchmarks/fuzz.py [CORPUS] -max_len=20000 -max_total_time=3600 -timeout=5

A finding is any exception but PageError, and any input of 20 kB that takes more than five seconds. Write it down as a
test in tests/page/test_fuzz.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["trafilatura", "scrapy_neardup"]):
    from tests.page.test_fuzz import one

if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
