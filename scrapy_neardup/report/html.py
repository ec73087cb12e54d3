"""The template of a report: one page that loads nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.untrusted import escape_json, link

#: Characters that end a script or an attribute.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def check_template() -> None:
    """Raise NearDupError if the template library is missing."""
    if find_spec("jinja2") is None:
        raise NearDupError("Reports need Jinja2. Run: pip install 'scrapy-neardup[report]'")


def render(values: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]], data: Any) -> str:
    """Fill in report.html, with report.css, report.js and its ``data`` inside.

    Values are escaped unless they are Markup. The policy of the page allows this script alone, and loads nothing.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    script = read_file("report.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update({"link": link, **filters})
    ours = {
        "style": Markup(read_file("report.css")),  # noqa: S704  # a file of ours
        "script": Markup(script),  # noqa: S704  # likewise
        "data": Markup(pack_data(data)),  # noqa: S704  # escaped there
        "policy": f"default-src 'none'; script-src {_digest(script)}; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'",
    }
    return environment.from_string(read_file("report.html")).render({**ours, **values}).lstrip()


def read_file(name: str) -> str:
    """Read a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def pack_data(data: Any) -> str:
    r"""Return JSON that is safe in a script element.

    >>> pack_data(["</script>", "a&b"])
    '["\\u003c/script\\u003e","a\\u0026b"]'
    """
    return escape_json(json.dumps(data, ensure_ascii=False, separators=(",", ":"))).translate(_ESCAPES)


def _digest(code: str) -> str:
    """Name a script for a policy.

    >>> _digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
