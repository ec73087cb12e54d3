"""The files of the project agree: Python versions, extras, checks, tags."""

from __future__ import annotations

import configparser
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import scrapy_neardup

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
READMES = ("README.md", "README.zh-CN.md")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def loaded(name: str) -> dict[Any, Any]:
    """A file of YAML, which must be one mapping."""
    found = yaml.safe_load(read(name))
    assert isinstance(found, dict), name
    return found


PROJECT = tomllib.loads(read("pyproject.toml"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def workflow(name: str) -> dict[Any, Any]:
    return loaded(f".github/workflows/{name}.yml")


#: The key ``on`` of a workflow, which is the value true to a reader of YAML 1.1.
ON = True


def environments() -> list[str]:
    tox = configparser.ConfigParser()
    tox.read_string(read("setup.cfg"))
    return tox["tox:tox"]["envlist"].replace(",", " ").split()


def commands(found: dict[Any, Any]) -> list[str]:
    return [step["run"] for job in found["jobs"].values() for step in job.get("steps", []) if "run" in step]


def test_everybody_names_the_same_versions_of_python_and_tries_the_oldest_and_newest_everywhere() -> None:
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    short = [f"py{version.replace('.', '')}" for version in versions]
    assert [name for name in environments() if re.fullmatch(r"py\d+", name)] == short
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == short[0]
    jobs = workflow("tests")["jobs"]
    for name, version in (("oldest", versions[0]), ("newest", versions[-1])):
        given = [step["with"] for step in jobs[name]["steps"] if "python-version" in step.get("with", {})]
        assert [str(one["python-version"]) for one in given] == [version]
    matrix = jobs["quick"]["strategy"]["matrix"]
    assert matrix["python"] == [versions[0], versions[-1]], "3.10 without quotes is 3.1"
    assert {system.partition("-")[0] for system in matrix["system"]} == {"macos", "windows"}
    others = [one["python"] for one in matrix["include"] if one["system"].startswith("ubuntu")]
    assert [versions[0], *others, versions[-1]] == versions


def test_the_oldest_scrapy_and_environments_of_workflows_are_there() -> None:
    [allowed] = re.findall(r"scrapy>=([\d.]+)", "\n".join(PROJECT["project"]["dependencies"]))
    [tried] = re.findall(r"scrapy==([\d.]+)", read("setup.cfg"))
    assert tried.startswith(f"{allowed}.")
    run = " ".join(command for path in WORKFLOWS for command in commands(workflow(path.stem)))
    assert set(re.findall(r"tox -e (\S+)", run)) == {"oldest"} <= set(environments())


def test_the_documentation_is_built_before_one_job_that_may_publishes_it() -> None:
    jobs = workflow("docs")["jobs"]
    for language in ("en", "zh"):
        build = f"sphinx-build -W --keep-going docs/{language} "
        assert any(command.startswith(build) for command in commands(workflow("docs")))
        assert build in read(".readthedocs.yaml")
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["needs"] == "build"
    assert "pull_request" in jobs["publish"]["if"]


def test_a_workflow_may_only_read_and_pins_what_it_uses() -> None:
    for path in WORKFLOWS:
        found = workflow(path.stem)
        assert found["permissions"] == {"contents": "read"}, path
        assert "concurrency" in found, path
        used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
        assert used, path
        for action in used:
            pinned = r"(actions/[\w-]+|pypa/gh-action-pypi-publish)@[0-9a-f]{40} # v\d+\.\d+\.\d+"
            assert re.fullmatch(rf"{pinned}|\./\S+\.yml", action), action


def test_a_release_is_tested_and_built_before_one_job_that_may_uploads_it() -> None:
    found = workflow("publish")
    assert found[ON] == {"push": {"tags": ["v*"]}}
    assert "workflow_call" in workflow("tests")[ON]
    jobs = found["jobs"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"]
    name = PROJECT["project"]["name"].replace("-", "_")
    assert any(f"{name}-${{GITHUB_REF_NAME#v}}.tar.gz" in command for command in commands(found))


def test_package_changelog_and_citation_name_the_same_release() -> None:
    citation = loaded("CITATION.cff")
    heading = next(line for line in read("CHANGELOG.md").splitlines() if re.match(r"## \d", line))
    assert heading == f"## {citation['version']} ({citation['date-released']})"
    assert citation["version"] == scrapy_neardup.__version__


def test_every_extra_that_is_named_is_there_and_all_for_users_are_named() -> None:
    """LevelDB is a dependency where it has a wheel; elsewhere it needs a compiler, and Spark takes 500 MB."""
    users = set(EXTRAS) - {"all", "docs", "test"}
    assert EXTRAS["all"] == [f"scrapy-neardup[{','.join(sorted(users - {'leveldb', 'spark'}))}]"]
    assert set(EXTRAS["docs"]) <= set(EXTRAS["test"])
    sources = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "scrapy_neardup").rglob("*.py")}
    for name, text in {**sources, **{name: read(name) for name in (*READMES, "CONTRIBUTING.md")}}.items():
        named = re.findall(r"(?:scrapy-neardup|\.)\[([\w,]+)\]", text)
        assert {extra for extras in named for extra in extras.split(",")} <= set(EXTRAS), name
    for name in READMES:
        assert 'pip install ".[all]"' in read(name)
        assert {*users, "docs"} == {extra for extra in {*users, "docs"} if f"`{extra}`" in read(name)}, name


def test_hooks_and_the_test_command_run_the_same_checks() -> None:
    hooks = [hook for repo in loaded(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    own = {" ".join(hook["entry"].split()[:2]) for hook in hooks if hook.get("language") == "system"}
    assert own == {"ruff check", "ruff format", "mypy"}
    [command] = [line for line in read("README.md").splitlines() if line.endswith("python -m pytest")]
    assert [check for check in own if f"&& {check}" not in command] == []


def test_a_wheel_names_the_oldest_python_that_can_load_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 3.13 on the headers of Python call functions that take other lengths before."""
    setuptools, made = pytest.importorskip("setuptools"), dict[str, Any]()
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("NEARDUP_PURE", raising=False)
    monkeypatch.setattr(setuptools, "setup", made.update)
    for minor, oldest in ((10, 0), (11, 11), (12, 11), (13, 13), (14, 13)):
        monkeypatch.setattr(sys, "version_info", (3, minor))
        runpy.run_path("setup.py")
        named = [dict(module.define_macros) for module in made["ext_modules"]], made["options"]
        macros, options = {"Py_LIMITED_API": f"0x03{oldest:02X}0000"}, {"py_limited_api": f"cp3{oldest}"}
        assert named == (([macros], {"bdist_wheel": options}) if oldest else ([{}], {})), minor
