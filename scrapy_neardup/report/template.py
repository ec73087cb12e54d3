"""Templates of this room filled in, and what a browser may do with the result."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from scrapy_neardup.errors import NearDupError


def check_template() -> None:
    """Raise NearDupError if the library is missing that fills templates in."""
    if find_spec("jinja2") is None:
        raise NearDupError("Reports need Jinja2. Run: pip install 'scrapy-neardup[report]'")


def filled_in(name: str, filters: dict[str, Callable[..., Any]], values: dict[str, Any]) -> str:
    """The template with values in it; they are escaped unless they are Markup."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(text_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(name).render(values).lstrip()


def text_of(name: str) -> str:
    """A file of this room."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def policy(*, scripts: str = "'none'", styles: str) -> str:
    """What the browser may do with a page: apply these scripts and styles, and load nothing."""
    return f"default-src 'none'; script-src {scripts}; style-src {styles}; base-uri 'none'; form-action 'none'"


def this_one(code: str) -> str:
    """A script or style as a policy names it, to let no other one in.

    >>> this_one("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(sha256(code.encode()).digest()).decode()}'"
