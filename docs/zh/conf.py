"""The Chinese pages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conf_shared import *  # noqa: F403

language = "zh_CN"
html_title = "scrapy-neardup"
