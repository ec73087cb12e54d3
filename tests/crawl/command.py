"""Run a command of Scrapy in a process of its own; what it prints goes to a file.

    python -m tests.crawl.command JOB.json

JOB.json: {"arguments": ["crawl", …], "out": path}
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from scrapy.cmdline import execute


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.dup2(os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    execute(["scrapy", *job["arguments"]])


if __name__ == "__main__":
    main()
