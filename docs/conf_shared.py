"""The Sphinx configuration that both languages share; ``docs/en/conf.py`` and ``docs/zh/conf.py`` import it."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "scrapy-neardup"
author = "scrapy-neardup contributors"
copyright = author

extensions = ["myst_parser", "neardup_site"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3  # links to headings work as on GitHub: page.md#some-heading
exclude_patterns = ["_build"]
smartquotes = False  # terminal texts and Chinese keep the marks that they have

html_theme = "furo"
html_static_path = ["../_static"]
html_css_files = ["neardup.css"]
templates_path = ["../_templates"]
html_copy_source = False
html_show_sphinx = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {"navigation_with_keys": True}
