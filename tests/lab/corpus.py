"""Documents in files: invented towns and trades, copied, edited and filled in anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.build import story

#: Documents are d00 to d29: 21 of their own, 4 copies of d00 to d03, 3 edited copies of d04 to d06, a short one twice.
LABELS = [
    *({"a": f"d{n:02}", "b": f"d{n + 21}", "drop": "yes"} for n in range(7)),
    *({"a": f"d{n:02}", "b": f"d{n + 1:02}", "drop": "no"} for n in range(7, 20)),
]


def lines(objects: Sequence[object]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)


def mixed() -> list[dict[str, Any]]:
    texts = ["".join(story(seed)) for seed in [*range(21), *range(4)]]
    texts += ["".join([*story(seed)[:-1], *story(100 + seed)[:1]]) for seed in range(4, 7)]
    return [{"id": f"d{n:02}", "text": text} for n, text in enumerate([*texts, "闭馆一天。", "闭馆一天。"])]
