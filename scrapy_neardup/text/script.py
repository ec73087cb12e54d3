"""Traditional Chinese characters as simplified ones, by OpenCC, where it is asked for.

The direction is ``tw2s``: it does all that ``t2s`` does and knows the variants usual in Taiwan too (帶著, 沿著).
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from scrapy_neardup.errors import SettingsError

if TYPE_CHECKING:
    import opencc


def converter_name() -> str:
    """Name, version and direction of the converter, for the recipe of a state; raises SettingsError without one."""
    _converter()
    return f"opencc {version('opencc')} tw2s"


def simplify(text: str) -> str:
    """The text in simplified characters; what is simplified already, or not Chinese, stays.

    >>> simplify("鎮上的老戲院")
    '镇上的老戏院'
    """
    try:
        return str(_converter().convert(text))
    except UnicodeEncodeError:
        return str(_converter().convert(text.encode("utf-8", "replace").decode("utf-8")))


@cache
def _converter() -> opencc.OpenCC:
    try:
        import opencc
    except ImportError:
        raise SettingsError('Traditional characters need OpenCC. Run: pip install "scrapy-neardup[opencc]"') from None
    return opencc.OpenCC("tw2s")
