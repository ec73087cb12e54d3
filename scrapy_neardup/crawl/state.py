"""What a crawl and whoever looks at its state afterwards must agree on: where it lies, and by which recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_neardup.config import Config, load_extractor
from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.hashing import HASH_NAME
from scrapy_neardup.methods import Method
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.extraction import Extractor, extractor_name
from scrapy_neardup.page.samples import reader_sample
from scrapy_neardup.stores import Store, default_url
from scrapy_neardup.stores.decisions import decide
from scrapy_neardup.stores.recipe import SAMPLES
from scrapy_neardup.text.samples import converter_sample, segmenter_sample
from scrapy_neardup.text.tokens import segmenter_name

logger = line_logger(__name__)

#: The setting that has a state refused by any other version.
STRICT_SETTING = "NEARDUP_STRICT"


def state_url(config: Config) -> str:
    """The URL of the state: NEARDUP_STORE, or else the default one in the data directory of Scrapy.

    Inside a project Scrapy makes that directory, ``.scrapy``, when it is asked for it; the state itself is not made.
    Where there are settings of a project but no scrapy.cfg (under scrapyd, in a container) Scrapy has no such directory
    and says NotConfigured, by which a crawl would go on without us: then it is the one below the working directory, as
    outside of projects.
    """
    if config.store:
        return config.store
    try:
        directory = Path(data_path("neardup"))
    except NotConfigured:
        directory = Path(".scrapy", "neardup").absolute()
        logger.warning(
            "There is no scrapy.cfg above %s to tell where the project's data lies, so the state is kept in %s. Where "
            "that does not outlive the crawl, set NEARDUP_STORE, such as 'leveldb:///var/crawls/state'.",
            Path.cwd(),
            directory,
        )
    return default_url(directory)


def page_extractor(config: Config) -> Extractor | None:
    """The user's own way to take the text out of HTML, NEARDUP_EXTRACTOR; None where it is ours."""
    return load_extractor(config.extractor) if config.extractor else None


def state_recipe(method: Method, extractor: Extractor | None) -> dict[str, Any]:
    """Everything that must be equal for the pages of two crawls to be comparable, as plain data."""
    said = {
        **method.recipe(),
        "hash": HASH_NAME,
        "segmenter": segmenter_name(),
        "extractor": extractor_name(extractor),
    }
    samples = {"segmenter": segmenter_sample()}
    if extractor is None:
        samples["extractor"] = reader_sample()
    if "script" in said:
        samples["script"] = converter_sample()
    return {**said, SAMPLES: samples}


def deciding(config: Config, method: Method) -> dict[str, Any]:
    """What two crawls of one state may have different, as it only decides: parameters of the method, and settings."""
    policy = {f"NEARDUP_POLICY {likeness.value}": action for likeness, action in config.policy.items()}
    return {**method.decisions(), "NEARDUP_MIN_LETTERS": config.min_letters, **policy}


def check_tools(store: Store, *, strict: bool, say: Callable[[str], object]) -> None:
    """Warn of tools that have another version than those that wrote the state; if ``strict``, raise StoreMismatch.

    Of them all, ``fits`` said that they read as those did, or the state would not be open.
    """
    if not store.renamed:
        return
    told = "; ".join(f"the {tool} was {there}, and is {here} now" for tool, (there, here) in store.renamed.items())
    if strict:
        raise StoreMismatch(
            f"The state at {store.location} was written by other versions: {told}. With {STRICT_SETTING} that is not "
            "taken, though they read our samples alike. Go back to those versions, bring the state to those of now "
            f"with: scrapy neardup migrate, or take {STRICT_SETTING} away."
        )
    say(
        f"The state at {store.location} was written by other versions: {told}. They read our samples alike, so it is "
        f"used as it is. A page that they read otherwise all the same may pass once more, as updated. To have such a "
        f"state refused, set {STRICT_SETTING} = True."
    )


def take_over(store: Store, recipe: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """Have the state name the tools and what is decided by as a crawl that begins has them; says what has changed.

    An empty answer: nothing that was known before. Raises StoreError.
    """
    store.take_on(recipe)
    changed = decide(store, said)
    if not changed:
        return ""
    now = ", ".join(f"{name} = {value}" for name, (_, value) in changed.items())
    return f"decides by {now} from here on; until now {', '.join(str(before) for before, _ in changed.values())}"
