"""The files of example_project/deploy name what is there: stats, states, volumes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from neardup_reference import stat_names

from scrapy_neardup.crawl import stats
from scrapy_neardup.model import Outcome
from scrapy_neardup.state.urls import parse_url

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "example_project" / "deploy"


def test_the_metrics_are_stats() -> None:
    """scrapy-metrics-exporter makes ``scrapy_neardup_pages`` of ``neardup/pages``."""
    for file in ["dashboard.json", "alerts.yml"]:
        known = {*stat_names(), *(stats.verdict(outcome.value) for outcome in Outcome), stats.verdict("unjudged", ".+")}
        metrics = {f"scrapy_{name.replace('/', '_')}" for name in known}
        named = set(re.findall(r"scrapy_neardup_[\w.+]+", (DEPLOY / file).read_text(encoding="utf-8")))
        assert len(named) > 8, file
        assert named <= metrics, file


def test_the_dashboard_has_panels_and_each_alert_says_what_is_wrong() -> None:
    panels = json.loads((DEPLOY / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    assert len({panel["id"] for panel in panels}) == len(panels)
    [group] = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    assert all(rule["annotations"]["summary"].startswith("{{ $labels.spider }}: ") for rule in group["rules"])


def test_containers_name_states_and_volumes_that_are_there() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    mounted = {volume.partition(":")[0] for service in compose["services"].values() for volume in service["volumes"]}
    assert mounted == set(compose["volumes"])
    assert (DEPLOY / compose["services"]["crawl"]["build"]["context"] / "scrapy.cfg").exists()
    texts = [(DEPLOY / name).read_text(encoding="utf-8") for name in ("Dockerfile", "compose.yaml")]
    kinds = [parse_url(url)[0] for text in texts for url in re.findall(r"NEARDUP_STORE=([^\s\"]+)", text)]
    assert [kind.scheme for kind in kinds] == ["sqlite", "redis"]
