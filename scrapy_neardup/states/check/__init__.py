"""Whether a state is whole, and a mended copy of one that is not.

checking    all that can be wrong with an open state
crosscheck  records, URLs and postings, each against the others
findings    what was looked at, and the problems
repairing   a mended copy, made beside its target
salvage     all rows of a damaged state that can be read
refile      filing them in a new state
"""

from __future__ import annotations

from scrapy_neardup.states.check.checking import check
from scrapy_neardup.states.check.findings import Findings
from scrapy_neardup.states.check.repairing import Repaired, repair

__all__ = ["Findings", "Repaired", "check", "repair"]
