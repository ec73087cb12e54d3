"""The files of example_project/deploy name what is there: stats, states, volumes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from neardup_reference import stat_names

from scrapy_neardup.crawl import stats
from scrapy_neardup.model import Outcome
from scrapy_neardup.state.urls import parse_url

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "example_project" / "deploy"
#: Each file with a program that checks it.
CHECKS = {
    "Dockerfile": ["hadolint", "--failure-threshold", "info"],
    "compose.yaml": ["check-jsonschema", "--builtin-schema", "vendor.compose-spec"],
    "../../CITATION.cff": ["check-jsonschema", "--builtin-schema", "vendor.citation-file-format"],
    "../../.github/dependabot.yml": ["check-jsonschema", "--builtin-schema", "vendor.dependabot"],
    **{
        f"../../.github/workflows/{name}.yml": ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
        for name in ("docs", "publish", "tests")
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("file", CHECKS)
def test_a_linter_or_a_schema_accepts_the_file(file: str) -> None:
    command = CHECKS[file]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed.")
    done = subprocess.run([*command, str(DEPLOY / file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


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
