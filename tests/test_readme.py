"""What the README promises is there: its commands, links, settings, stats, in both languages."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from scrapy_neardup.commands import COMMANDS
from scrapy_neardup.config import SETTINGS, Config
from scrapy_neardup.crawl import stats
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Page

ROOT = Path(__file__).parents[1]
READMES = ["README.md", "README.zh-CN.md"]
#: Pages of docs/ that are there in Chinese, too, as docs/zh/NAME.md.
TRANSLATED = ["commands", "delivery", "limits", "security"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def commands(name: str) -> list[str]:
    return re.findall(r"```sh\n(.+?)\n```", read(name))


def test_both_readmes_print_the_same_two_commands() -> None:
    first, second = commands("README.md")
    assert commands("README.zh-CN.md") == [first, second]
    assert first == "pip install . && (cd example_project && scrapy crawl mirror)"
    assert (ROOT / "example_project" / "scrapy.cfg").exists()
    assert 'name = "mirror"' in read("example_project/newsmirror/spiders/mirror.py")


def test_ci_runs_the_second_command_as_it_is_printed() -> None:
    script = read(".ci/run")
    [extraction] = [line for line in script.splitlines() if line.startswith("command=$(sed")]
    found = subprocess.run(
        ["bash", "-c", f'{extraction}; printf %s "$command"'], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout == commands("README.md")[1]
    assert "python3 -m venv" in script


@pytest.mark.parametrize(
    "name",
    [
        *READMES,
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/cascade.md",
        "docs/commands.md",
        "docs/delivery.md",
        "docs/limits.md",
        "docs/many-machines.md",
        "docs/security.md",
        *(f"docs/zh/{name}.md" for name in TRANSLATED),
        "docs/methods.md",
        "docs/performance.md",
        "docs/script.md",
        "docs/state.md",
        "docs/tuning.md",
        "benchmarks/README.md",
        "example_project/README.md",
    ],
)
def test_every_link_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(((?!https?:)[^)\s]+)\)", read(name))
    assert [link for link in links if not leads_somewhere(ROOT / name, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether there is such a file, and in it such a heading."""
    path, _, heading = link.partition("#")
    target = page.parent / path if path else page
    if not heading:
        return target.exists()
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return heading in {re.sub(r"[^\w -]", "", one).strip().lower().replace(" ", "-") for one in headings}


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_page_says_the_same_in_chinese(name: str) -> None:
    """As far as that can be told: its parts in their order, its tables, and every name, command and setting in it."""
    english, chinese = (
        re.sub(r"\n\[.*?\]\(.*?\)\n", "", read(page), count=1) for page in (f"docs/{name}.md", f"docs/zh/{name}.md")
    )
    shapes = [re.findall(r"^(#+) |^(\|--.*|```\w*|\* )", text, re.MULTILINE) for text in (english, chinese)]
    assert shapes[0] == shapes[1]
    commands = [re.findall(r"^(scrapy neardup .*?)(?: +#.*)?$", text, re.MULTILINE) for text in (english, chinese)]
    assert commands[0] == commands[1]
    names = [set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)) for text in (english, chinese)]
    assert {one for one in names[0] ^ names[1] if not re.search(r"[\u3400-\u9fff ]", one)} == set()
    numbers = [set(re.findall(r"\d[\d,.]*\d", text)) for text in (english, chinese)]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("name", READMES)
def test_every_setting_stands_in_the_readme_with_its_default(name: str) -> None:
    rows = dict(re.findall(r"^\| `(DROP_DUPLICATES|NEARDUP_\w+)` \| ([^|]+) \|", read(name), re.MULTILINE))
    assert list(rows) == sorted(rows, key=["DROP_DUPLICATES", *rows].index)
    assert set(rows) == set(SETTINGS)
    defaults = Config()
    for field in fields(Config):
        value = getattr(defaults, field.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            setting = f"NEARDUP_{field.name.upper()}"
            assert rows[setting] == f"`{value:g}`" or rows[setting] == f"`{value}`", setting


@pytest.mark.parametrize("name", READMES)
def test_every_stat_stands_in_the_readme(name: str) -> None:
    text = read(name)
    told = {value for key, value in vars(stats).items() if key.isupper() and isinstance(value, str)}
    assert len(told) > 10
    missing = {stat for stat in told if stat not in text and stat.removeprefix("neardup") not in text}
    missing = {stat for stat in missing if "/" + stat.rpartition("/")[2] not in text}
    assert not missing


@pytest.mark.parametrize("name", READMES)
def test_every_reason_for_not_judging_stands_in_the_readme(name: str) -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "scrapy_neardup").rglob("*.py"))
    reasons = set(re.findall(r'(?:reason=|(?:ExtractionError|LexiconNeeded)\(\s*)"(\w+)"', sources))
    reasons |= {"too_short", "boilerplate", "quotes"}
    assert len(reasons) >= 10
    assert {reason for reason in reasons if f"`{reason}`" not in read(name)} == set()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_stands_in_their_page_with_its_parameters_and_their_values(name: str) -> None:
    """In a section of its own, as rows ``| `parameter` | default |``; two that belong together may share a row."""
    sections = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##)", read("docs/methods.md"), re.MULTILINE | re.DOTALL))
    assert next(iter(sections)) == "cascade"
    assert set(sections) == set(METHODS)
    if name == "cascade":  # has a page of its own, with a test of its own
        return
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", sections[name], re.MULTILINE)
    told: dict[str, str] = {}
    for names, values in rows:
        one, several = re.findall(r"`(\w+)`", names), values.split(", ")
        told.update(zip(one, several if len(several) == len(one) else several * len(one), strict=True))
    for field in fields(METHODS[name].parameters_type):
        if field.name != "simplified":
            default = field.default
            assert told.pop(field.name).strip("`") == (f'"{default}"' if isinstance(default, str) else f"{default:g}")
    assert not told


def test_the_method_of_ones_own_works_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"```python\n([^`]*class FirstParagraph.*?)```", read("docs/methods.md"), re.DOTALL)
    (tmp_path / "printed.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    method = make_method("printed.FirstParagraph", {})
    one, copy, other = (
        method.fingerprint(Page("http://a.example/", text=text)) for text in ("渡口\n开航", "渡口\n停航", "桥\n开航")
    )
    assert method.compare(one, copy.sketch, frozenset()).duplicate
    assert set(one.keys) & set(copy.keys)
    assert not method.compare(one, other.sketch, frozenset()).duplicate


@pytest.mark.parametrize("name", READMES)
def test_every_method_stands_in_the_readme(name: str) -> None:
    assert {method for method in METHODS if f"`{method}`" not in read(name)} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_stands_in_the_page_of_commands(command: str) -> None:
    assert f"scrapy neardup {command}" in read("docs/commands.md")


def test_the_parameters_of_the_method_stand_in_its_page_with_their_values() -> None:
    text = read("docs/cascade.md")
    parameters = Config().make_method().parameters
    written = {"min_counted": "six letters and more", "max_sentences": "3 longest"}
    told = 0
    for field in fields(parameters):
        name, value = field.name, getattr(parameters, field.name)
        if f"`{name}`" in text and name not in written and isinstance(value, (int, float)):
            forms = (f"`{name}` {value:g}", f"{value:g} (`{name}`)", f"{value:.2f} `{name}`")
            assert any(form in text for form in forms), name
            told += 1
    assert told >= 18
    assert all(words in text for words in written.values())
