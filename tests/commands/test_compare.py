"""``scrapy neardup compare``: verdicts on pairs of every kind, pages of the state, and what it refuses."""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from scrapy_neardup.cli import NearDupCommand
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.build import join_text, open_state, state_url
from tests.cli import Invoke, environment, make_project, run_scrapy

FERRY = [
    "渡口今天清晨恢复通航，头一班船载着二十三名乘客离岸",
    "老船工站在栏杆边说，他等这一天等了整整七个月",
    "去年秋天的大水冲垮了引桥，修复工程耗资四百二十万元",
    "附近三个村子的孩子以后不用再绕行十五公里去上学",
    "镇里的小吃店也在同一天重新开张，豆腐汤卖到中午就没了",
    "工程队在河床下打了六十四根新桩，比旧桩深一倍",
    "航运公司说，票价仍是两元，老人和学生免费",
    "傍晚最后一班船返回时，岸边点起了灯，许多人在拍照",
]
#: Those that a sketch holds.
LONGEST = set(sorted(FERRY, key=lambda sentence: -len(sentence.replace("，", "")))[:3])
LIBRARY = [
    "The library on Mill Street will stay open until ten in the evening from next week",
    "Two retired teachers have volunteered to look after the reading room",
    "The council had meant to close the building for want of money",
    "A petition with nine hundred signatures changed its mind in a single night",
    "New lamps were given by the carpenter whose workshop is next door",
    "Children may borrow five books at once, and keep them over the summer",
    "Whoever cannot climb the stairs will find a lift behind the second door",
]
FORM = "{0}使用说明：本产品额定功率{1}瓦，额定电压{2}伏。请在使用前仔细阅读本说明书，并妥善保管。"
FORM += "首次使用{0}前请清洗{3}。型号{4}，净重{5}克，出厂编号{6}。请勿将{0}放置在窗帘或炉灶附近。"
FORM += "清洗时请先拔下电源插头，再用干净的湿布擦拭外壳。保修期{7}个月。"
FORM += "如遇故障，请与当地的维修站联系，切勿自行拆开。本说明书的最终解释权归制造商所有，图片仅供参考，以实物为准。"
FORM += "儿童和行动不便的人应在他人照看下使用本产品。废弃的电器请送交回收站，不要与生活垃圾一起丢弃。"
FORM += "搬运时请轻拿轻放，避免碰撞和受潮。长期不用时请擦干并装回原来的包装盒，放在通风的地方。"
FORM += "如有疑问，可在工作日拨打服务热线，或写信到本公司的顾客服务部。"
FOOTER = "本站所有文章的版权属于原作者所有，如有异议请在三十日内来函告知"
NOTICE = "停水通知：因管道检修，幸福小区三号楼将于五月六日上午九时至下午四时停水，请居民提前储水，不便之处敬请谅解。"

A, B = "https://harbor.example/1", "https://daybook.example/2"


DOCUMENTS: list[dict[str, Any]] = [
    {"id": "ferry", "title": "渡口恢复通航", "text": join_text(*FERRY), "url": A},
    {"id": "copy", "title": "七个月后，船又开了", "text": join_text(*FERRY[:7], "转载请联系本站"), "url": B},
    {"id": "same", "title": "渡口恢复通航", "text": join_text(*FERRY)},
    {"id": "excerpt", "title": "二十三名乘客", "text": join_text(*FERRY[:3])},
    {"id": "other", "title": "The library stays", "text": join_text(*LIBRARY)},
    {
        "id": "kettle",
        "title": "电热水壶说明",
        "text": FORM.format("电热水壶", 1800, 220, "壶体内胆", "KT208", 1150, 20481, 12),
    },
    {
        "id": "fan",
        "title": "落地风扇说明",
        "text": FORM.format("落地风扇", 55, 110, "叶片网罩", "FS960", 5300, 77310, 36),
    },
    {"id": "notice", "title": "通知", "text": NOTICE},
    {"id": "again", "title": "通知", "text": NOTICE.replace("三号楼", "七号楼").replace("五月六日", "六月二日")},
    {"id": "short", "title": "短", "text": "太短。"},
    {"id": "empty", "title": "空", "text": " \n"},
    {"id": "#1 of 2", "title": "渡口恢复通航", "text": join_text(*FERRY)},
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run: a file of documents is all that is there."""
    lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in DOCUMENTS)
    (tmp_path / "d.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def errors() -> list[str]:
    """What each run of a command in this process wrote to standard error."""
    return []


@pytest.fixture
def run(invoke: Invoke, errors: list[str]) -> Callable[..., list[str]]:
    """Runs the command in this process, with settings; returns lines."""

    def run(*arguments: str | Path, **settings: Any) -> list[str]:
        done = invoke("compare", *arguments, **settings)
        assert done.code == 0
        errors.append(done.err)
        return done.out.splitlines()

    return run


@pytest.fixture
def found(run: Callable[..., list[str]]) -> Callable[..., dict[str, Any]]:
    """The same, as the object that --json prints."""

    def found(*arguments: str | Path, **settings: Any) -> dict[str, Any]:
        answer = json.loads("\n".join(run(*arguments, "--json", **settings)))
        assert isinstance(answer, dict)
        return answer

    return found


def page(id: str, url: str) -> Page:
    [document] = [one for one in DOCUMENTS if one["id"] == id]
    return Page(url, document["title"], text=document["text"])


def judged(store: PageStore, *pages: Page, sealed: bool = True, keep: Keep = Keep.NOTHING) -> None:
    detector = Detector(make_method("cascade", {}), store, who="morning", policy=Policy(keep=keep))
    for one in pages:
        detector.judge_now(one, sealed=sealed)


@pytest.fixture(params=["sqlite", "leveldb"])
def state(request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of a state with some pages."""
    url = state_url(request.param, folder / ".scrapy" / "neardup" / f"state.{request.param}")
    (folder / ".scrapy" / "neardup").mkdir(parents=True)
    with open_state(url) as store:
        judged(store, page("ferry", A), page("copy", B), page("same", "https://same.example/"), page("other", "lib"))
    return url


def marks(side: dict[str, Any], mark: str = "shared") -> list[str]:
    return [part["text"] for part in side["text"] if part["mark"] == mark]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


@pytest.mark.slow
def test_a_copy_under_another_title_is_explained(folder: Path) -> None:
    done = run_scrapy("compare", "d.jsonl#ferry", "d.jsonl#copy", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("duplicate (retitled): B is a copy of A, similarity 0.")
    assert lines[1:3] == ['A is d.jsonl#ferry, "渡口恢复通航"', 'B is d.jsonl#copy, "七个月后，船又开了"']
    assert lines[3].startswith("A crawl compares them and drops B: ")
    assert cells(lines[5]) == ["feature", "value", "weight", "adds", "meaning"]
    rows = {row[0]: row[1:] for row in map(cells, lines[7:]) if row}
    assert {"similarity", "form", "gone", "same_title", "numbers", "title"} <= set(rows)
    added = sum(float(adds) for _, weight, adds, _ in rows.values() if weight)
    [score] = [line for line in lines if line.startswith("Score ")]
    assert float(score.split()[1].rstrip(",")) == pytest.approx(added, abs=0.005)
    assert "needed" in score
    assert any(line.startswith("Decision: The s") for line in lines)
    assert "Common sentences: between [[ and ]]." in lines
    assert [line.count("[[") for line in lines[-5:]] == [7, 0, 0, 0, 7]
    assert lines[-5].endswith(f"]]。{FERRY[7]}。")
    assert lines[-1].endswith("]]。转载请联系本站。")


def test_json_holds_all_of_it(found: Callable[..., Any]) -> None:
    answer = found("d.jsonl#ferry", "d.jsonl#copy")
    assert [answer[name] for name in ("verdict", "kind", "reason", "action", "method", "store")] == [
        *("duplicate", "retitled", None, "drop", "cascade", None)
    ]
    assert answer["parameters"]["shingle"] == 5
    assert answer["sentence"].startswith("duplicate (retitled): B is a copy of A, similarity 0.")
    assert sum(one["adds"] for one in answer["features"]) == pytest.approx(answer["score"], abs=0.001)
    assert set(answer["features"][0]) == {"name", "value", "weight", "adds", "meaning"}
    assert answer["features"][0]["value"] == answer["similarity"] < answer["containment"]
    assert answer["decision"].startswith("The s")
    assert 0 < answer["keys"]["shared"] <= answer["keys"]["of"]
    part = found("d.jsonl#ferry", "d.jsonl#excerpt")["keys"]
    assert 0 < part["shared"] < part["of"]
    assert (answer["a"]["name"], answer["a"]["title"], answer["a"]["cut"]) == ("d.jsonl#ferry", "渡口恢复通航", False)
    assert "".join(part["text"] for part in answer["a"]["text"]) == join_text(*FERRY)
    assert marks(answer["a"]) == marks(answer["b"]) == FERRY[:7]


@pytest.mark.parametrize(
    ("a", "b", "verdict", "kind", "said"),
    [
        ("ferry", "same", "duplicate", "identical", "identical"),
        ("ferry", "#1 of 2", "duplicate", "identical", "identical"),
        ("kettle", "fan", "unique", None, "two notices"),
        ("ferry", "other", "unique", None, ""),
        ("ferry", "excerpt", "unique", "excerpt", ""),
        ("notice", "again", "unique", "same_title", "one word makes another notice"),
        ("notice", "notice", "duplicate", "identical", "identical"),
    ],
)
def test_verdicts(found: Callable[..., Any], a: str, b: str, verdict: str, kind: str | None, said: str) -> None:
    answer = found(f"d.jsonl#{a}", f"d.jsonl#{b}")
    assert (answer["verdict"], answer["kind"]) == (verdict, kind)
    assert said in answer["decision"]


@pytest.mark.parametrize(
    ("b", "said"),
    [
        ("excerpt", "unique (excerpt): B is no copy of A, but one contains most of the other and much more, simi"),
        ("other", "unique: B is no copy of A, similarity 0.0"),
    ],
)
def test_the_verdict_on_a_page_that_passes_is_a_sentence(run: Callable[..., list[str]], b: str, said: str) -> None:
    assert run("d.jsonl#ferry", f"d.jsonl#{b}")[0].startswith(said)


def test_pages_that_share_nothing_are_not_compared_in_a_crawl(run: Callable[..., list[str]]) -> None:
    lines = run("d.jsonl#ferry", "d.jsonl#other")
    assert lines[3].startswith("A crawl does not compare them and lets B pass: 0 of B's ")
    assert "No common sentence is known." in lines


def test_the_policy_of_the_project_says_what_becomes_of_the_page(found: Callable[..., Any]) -> None:
    pair = "d.jsonl#ferry", "d.jsonl#excerpt"
    assert [found(*pair)[name] for name in ("verdict", "action")] == ["unique", "tag"]
    strict = found(*pair, NEARDUP_POLICY={"excerpt": "drop"})
    assert (strict["verdict"], strict["kind"], strict["action"]) == ("duplicate", "excerpt", "drop")
    assert found("d.jsonl#ferry", "d.jsonl#same", DROP_DUPLICATES=False)["action"] == "tag"


@pytest.mark.parametrize(
    ("a", "b", "reason", "said"),
    [
        ("ferry", "short", "too_short", "B has fewer than 40 letters"),
        ("empty", "ferry", "no_text", "A has no text"),
        ("empty", "short", "too_short", "A has no text, and B has fewer than 40 letters"),
    ],
)
def test_pages_that_cannot_be_judged(
    found: Callable[..., Any], run: Callable[..., list[str]], a: str, b: str, reason: str, said: str
) -> None:
    answer = found(f"d.jsonl#{a}", f"d.jsonl#{b}")
    assert (answer["verdict"], answer["reason"], "features" in answer) == ("unjudged", reason, False)
    lines = run(f"d.jsonl#{a}", f"d.jsonl#{b}")
    assert lines[0].startswith(f"unjudged ({reason}): {said}")
    assert not any(line.startswith("|") for line in lines)


def test_how_many_letters_are_enough_is_the_projects_setting(found: Callable[..., Any]) -> None:
    assert found("d.jsonl#ferry", "d.jsonl#same", NEARDUP_MIN_LETTERS=1000)["reason"] == "too_short"


def test_html_is_decoded_and_extracted_as_in_a_crawl(found: Callable[..., Any], folder: Path) -> None:
    body = "".join(f"<p>{one}。</p>" for one in FERRY)
    menu = "<nav><ul><li>首页<li>新闻<li>关于我们</ul></nav>"
    head = "<head><title>渡口恢复通航 - 港湾日报网</title></head>"
    html = f"<html>{head}<body>{menu}<article>{body}</article></body></html>"
    (folder / "old.HTM").write_bytes(html.encode("gb18030"))
    (folder / "new.txt").write_text(join_text(*FERRY), encoding="utf-8")
    answer = found("old.HTM", "new.txt")
    assert (answer["verdict"], answer["kind"]) == ("duplicate", "identical")
    assert (answer["a"]["title"], answer["b"]["title"]) == ("渡口恢复通航", "")
    assert "首页" not in "".join(part["text"] for part in answer["a"]["text"])
    assert marks(answer["a"]) == marks(answer["b"]) == FERRY


@pytest.mark.parametrize("place", ["packed#1.jsonl.gz", "."])
def test_documents_of_packed_files_and_of_folders(found: Callable[..., Any], folder: Path, place: str) -> None:
    name = "docs.jsonl.gz" if place == "." else place
    (folder / name).write_bytes(gzip.compress((folder / "d.jsonl").read_bytes()))
    assert found("d.jsonl#ferry", f"{place}##1 of 2")["kind"] == "identical"


def test_long_texts_are_cut_and_that_is_said(run: Callable[..., list[str]], found: Callable[..., Any]) -> None:
    pair = "d.jsonl#ferry", "d.jsonl#copy"
    length = len(join_text(*FERRY))
    lines = run(*pair, "--limit", "30")
    said = f"(cut after 30 of {length} characters, and 5 more common sentences; --limit 0 shows all)"
    assert said in lines
    assert f"  | [[{FERRY[0]}]]。[[{FERRY[1][: 29 - len(FERRY[0])]}]]" in lines
    side = found(*pair, "--limit", "30")["a"]
    assert (side["cut"], side["characters"], sum(len(part["text"]) for part in side["text"])) == (True, length, 30)
    assert found(*pair, "--limit", "0")["a"] == found(*pair)["a"]
    assert not any("cut after" in line for line in run(*pair, "--limit", str(length)))


def test_a_method_that_does_not_explain_itself(run: Callable[..., list[str]], found: Callable[..., Any]) -> None:
    pair = "d.jsonl#ferry", "d.jsonl#copy", "--method", "shingle:similarity=0.6,n=4"
    lines = run(*pair)
    assert lines[0].startswith("duplicate (")
    assert [cells(line)[0] for line in lines if line.startswith("| ")] == ["feature", "similarity", "containment"]
    assert "Decision: shingle, similarity=0.6: a copy." in lines
    answer = found(*pair)
    assert (answer["method"], answer["parameters"]["n"], answer["features"]) == ("shingle", 4, None)
    assert marks(answer["b"]) == FERRY[:7]


def test_the_projects_method_is_the_default(found: Callable[..., Any]) -> None:
    given = {"NEARDUP_METHOD": "shingle", "NEARDUP_PARAMETERS": {"similarity": 0.9}}
    answer = found("d.jsonl#ferry", "d.jsonl#copy", **given)
    assert (answer["method"], answer["verdict"]) == ("shingle", "unique")
    assert found("d.jsonl#ferry", "d.jsonl#copy", "--method", "cascade", **given)["method"] == "cascade"


def test_settings_on_the_line_are_the_projects_too(capsys: pytest.CaptureFixture[str]) -> None:
    group = NearDupCommand()
    group.settings = Settings()
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    group.add_options(parser)
    line = "compare", "d.jsonl#ferry", "d.jsonl#copy", "--json", "-s", "NEARDUP_METHOD=simhash"
    options, rest = parser.parse_known_args(line)
    group.process_options(rest, options)
    group.run(rest, options)
    assert group.exitcode == 0
    assert json.loads(capsys.readouterr().out)["method"] == "simhash"


# The state.

SPIDER = f"""
from scrapy import Spider

class Harbor(Spider):
    name = "harbor"
    start_urls = ["data:,harbor"]

    def parse(self, response):
        yield {{"url": {A!r}, "title": "渡口恢复通航", "text": {join_text(*FERRY)!r}}}
"""


@pytest.mark.slow
def test_a_page_that_a_crawl_has_put_into_the_state_of_the_project(folder: Path) -> None:
    make_project(folder)
    (folder / "spider.py").write_text(SPIDER, encoding="utf-8")
    line = [sys.executable, "-m", "scrapy", "runspider", "spider.py"]
    subprocess.run(line, cwd=folder, env=environment(), capture_output=True, check=True, timeout=60)
    done = run_scrapy("compare", A, "d.jsonl#copy", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("duplicate (retitled): B is a copy of A, similarity 0.")
    assert lines[1] == f"A is {A}"
    assert "The state has no text of A. It recognises only some of its longest sentences." in lines
    assert lines[-3:-1] == ["B:", ""]
    assert lines[-1].count("[[") == 3  # as many as a sketch holds
    assert "A:" not in lines


def test_a_url_is_found_in_the_default_state_and_compared_by_its_sketch(found: Callable[..., Any], state: str) -> None:
    known, text_alone = found(A, "d.jsonl#copy"), found("d.jsonl#ferry", "d.jsonl#copy", "--store", state)
    assert Path(known["store"]).name == f"state.{state.partition(':')[0]}"
    assert (known["verdict"], known["similarity"]) == (text_alone["verdict"], text_alone["similarity"])
    assert (known["a"]["text"], known["a"]["title"], known["a"]["name"]) == (None, None, A)
    assert set(marks(known["b"])) == LONGEST
    turned = found("d.jsonl#copy", A)
    assert set(marks(turned["a"])) == LONGEST
    assert turned["b"]["text"] is None


def test_of_two_urls_there_are_no_texts(run: Callable[..., list[str]], state: str) -> None:
    lines = run(A, B)
    assert lines[0].startswith("duplicate (retitled): ")
    assert lines[-1] == "The state has the text of neither page, so there is nothing more to show."


def test_texts_that_the_state_was_to_keep_are_shown(found: Callable[..., Any], folder: Path) -> None:
    url = state_url("sqlite", folder / "texts.sqlite")
    with open_state(url) as store:
        # The third is so like its original that nothing else is kept of it to compare by.
        judged(store, page("ferry", A), page("copy", B), page("same", "https://same.example/"), keep=Keep.TEXTS)
    for a, b in ((A, B), (A, "https://same.example/"), ("https://same.example/", B)):
        answer = found(a, b, "--store", url)
        assert answer["verdict"] == "duplicate"
        assert answer["similarity"] == found(*(_document(one) for one in (a, b)), "--store", url)["similarity"]
        assert marks(answer["a"]) == marks(answer["b"])
        assert marks(answer["a"])[:7] == FERRY[:7]


def _document(url: str) -> str:
    return "d.jsonl#" + {A: "ferry", B: "copy"}.get(url, "same")


def test_with_a_store_a_url_may_be_any_string(found: Callable[..., Any], state: str) -> None:
    assert found("lib", "d.jsonl#other", "--store", state)["kind"] == "identical"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://gone.example/", r"state\..* has no page https://gone\.example/"),
        (
            "https://same.example/",
            f"only that it is a copy of {A}, similarity",
        ),
    ],
)
def test_a_url_of_which_the_state_holds_nothing(run: Callable[..., Any], state: str, url: str, said: str) -> None:
    with pytest.raises(NearDupError, match=said):
        run(url, "d.jsonl#copy")


def test_a_page_that_is_a_copy_itself_counts_by_similarity_alone(
    run: Callable[..., list[str]], found: Callable[..., Any], state: str
) -> None:
    assert found(B, "d.jsonl#copy")["compared_in_a_crawl"] is True
    with open_state(state) as store:
        witness = store.find(B)
        assert witness is not None
        assert not witness.is_original
    assert run(B, "d.jsonl#excerpt")[3].startswith("A crawl lets B pass: A is a copy itself")


def test_a_page_that_names_its_original_is_compared_with_it(
    run: Callable[..., list[str]], folder: Path, state: str
) -> None:
    link = f'<html><head><link rel=canonical href="{A}"></head><body><article>'
    (folder / "b.html").write_text(link + "".join(f"<p>{one}.</p>" for one in LIBRARY), encoding="utf-8")
    said = run(A, "b.html")[3]
    assert said == "A crawl compares them and lets B pass: B names A as its original."


def test_keys_of_too_many_pages_find_nothing(
    run: Callable[..., list[str]], found: Callable[..., Any], state: str
) -> None:
    before = found(A, "d.jsonl#copy")["keys"]
    method = make_method("cascade", {})
    with open_state(state) as store:
        keyed = method.with_hashes(store.hashes)
        own, theirs = (keyed.fingerprint(page(id, "")).keys for id in ("copy", "ferry"))
        key = next(key for key in own if key in theirs)
        for number in range(method.common):
            store.add(Record(number + 1, f"https://many.example/{number}", number + 1, 1.0, (key,), b"-"))
    after = found(A, "d.jsonl#copy")["keys"]
    assert after == {"shared": before["shared"] - 1, "of": before["of"], "common": 1}
    assert run(A, "d.jsonl#copy")[3].endswith(" are keys of A (1 keys of too many pages do not count).")


def test_the_state_says_what_is_boilerplate(
    run: Callable[..., list[str]], found: Callable[..., Any], folder: Path, state: str
) -> None:
    pair = []
    for name, own in (("one", FERRY), ("two", LIBRARY)):
        (folder / f"{name}.txt").write_text(join_text(*own, FOOTER), encoding="utf-8")
        pair.append(f"{name}.txt")
    (folder / "footer.txt").write_text(join_text(FOOTER, FOOTER), encoding="utf-8")
    with open_state(state) as store:
        counted = (
            make_method("cascade", {}).with_hashes(store.hashes).fingerprint(Page("", text=join_text(FOOTER))).sentences
        )
        for number in range(60):
            store.note(counted, f"daybook{number}.example")
    alone = found(*pair, "--no-state")
    assert (marks(alone["a"]), alone["store"], bool(alone["why_no_store"])) == ([FOOTER], None, True)
    assert found(*pair)["store"] == found(*pair, "--store", state)["store"]
    answer = found(*pair, "--store", state)
    assert (marks(answer["a"]), marks(answer["b"], "boilerplate")) == ([], [FOOTER])
    lines = run(*pair, "--store", state)
    assert "No common sentence besides boilerplate is known." in lines
    assert "Boilerplate (on many pages): between {{ and }}." in lines
    assert sum(f"{{{{{FOOTER}}}}}" in line for line in lines) == 2
    said = run("d.jsonl#ferry", "footer.txt", "--store", state)[0]
    assert said.startswith("unjudged (boilerplate): B has fewer than 40 letters besides boilerplate")


def test_what_a_killed_crawl_has_left_is_told_and_stays(
    run: Callable[..., list[str]], errors: list[str], state: str
) -> None:
    with open_state(state) as store:
        judged(store, page("kettle", "https://kettle.example/"), sealed=False)
    run(A, "d.jsonl#copy")
    run(A, "d.jsonl#copy")
    first, second = errors
    assert "nobody is using it. 1 page is unsealed: the crawl (morning) was killed" in first
    assert second.partition(", ")[2] == first.partition(", ")[2]  # but for the time


def test_a_state_of_another_method_is_refused(run: Callable[..., Any], state: str) -> None:
    with pytest.raises(NearDupError, match=r"another recipe: .*method is 'cascade' in the state and 'simhash'"):
        run(A, "d.jsonl#copy", "--method", "simhash")
    run(A, "d.jsonl#copy")


def test_where_there_is_no_state_none_is_made(run: Callable[..., Any], folder: Path) -> None:
    before = set(folder.rglob("*"))
    with pytest.raises(NearDupError, match=r"There is no state at .*neardup\. Name"):
        run(A, "d.jsonl#copy")
    assert set(folder.rglob("*")) == before


@pytest.mark.slow
def test_in_a_project_that_was_never_crawled_an_error_says_so_and_no_state_is_made(folder: Path) -> None:
    done = run_scrapy("compare", A, "d.jsonl#copy", cwd=make_project(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"scrapy neardup compare: There is no state at {folder.resolve() / '.scrapy'}")
    assert "--store leveldb:///path" in done.stderr
    assert not list(folder.glob(".scrapy/*"))  # the folder is Scrapy's own


@pytest.mark.parametrize("scheme", ["sqlite", "leveldb"])
@pytest.mark.parametrize("there", ["nothing", "a folder", "an empty file"])
def test_what_is_no_state_is_not_made_one(run: Callable[..., Any], folder: Path, scheme: str, there: str) -> None:
    place = folder / "deep" / "state"
    if there != "nothing":
        place.parent.mkdir()
        place.mkdir() if there == "a folder" else place.touch()
    before = set(folder.rglob("*"))
    with pytest.raises(NearDupError, match=r"There is no state at .*state\. Name"):
        run("d.jsonl#ferry", "d.jsonl#copy", "--store", state_url(scheme, place))
    assert set(folder.rglob("*")) == before


# A copy of which no text is kept.


def fill(folder: Path, *pages: Page, keep: Keep = Keep.EVIDENCE) -> str:
    url = state_url("sqlite", folder / "state.sqlite")
    with open_state(url) as store:
        judged(store, *pages, keep=keep)
    return url


SAME = "https://same.example/"


def test_an_original_and_its_copy_are_told_of_in_either_order(
    run: Callable[..., Any], found: Callable[..., Any], folder: Path
) -> None:
    url = fill(folder, page("ferry", A), page("same", SAME), page("other", B))
    for one, two, said in ((A, SAME, "B is a copy of A"), (SAME, A, "A is a copy of B")):
        lines = run(one, two, "--store", url)
        assert lines[0].startswith(f"duplicate (identical): {said}, similarity 1.00.")
        assert f"A is {one}" in lines[1]
        assert f"B is {two}" in lines[2]
        assert any(FERRY[0][:20] in line for line in lines)
        assert 'NEARDUP_KEEP = "texts"' in lines[-1]
        answer = found(one, two, "--store", url)
        assert (answer["verdict"], answer["kind"], answer["original"]) == ("duplicate", "identical", A)
        assert (answer["remembered"], answer["a"]["name"], answer["similarity"]) == (True, one, 1.0)
        assert answer["shared"]


def test_two_copies_of_one_original_are_told_of_by_that(run: Callable[..., Any], folder: Path) -> None:
    again = "https://again.example/"
    url = fill(folder, page("ferry", A), page("same", SAME), page("same", again))
    lines = run(SAME, again, "--store", url)
    assert lines[0].startswith("duplicate (identical): B and A are copies of one page; B has similarity 1.00")
    assert f"Both are copies of {A}." in lines[3]


def test_where_nothing_was_kept_the_copy_is_told_of_without_its_kind(run: Callable[..., Any], folder: Path) -> None:
    url = fill(folder, page("ferry", A), page("same", SAME), keep=Keep.NOTHING)
    assert run(A, SAME, "--store", url)[0] == "duplicate: B is a copy of A, similarity 1.00."


def test_where_its_text_was_kept_it_is_compared_by_that(found: Callable[..., Any], folder: Path) -> None:
    url = fill(folder, page("ferry", A), page("same", SAME), keep=Keep.TEXTS)
    answer = found(A, SAME, "--store", url)
    assert "remembered" not in answer
    assert answer["features"]


def test_with_another_page_the_message_names_the_original_and_what_would_help(
    run: Callable[..., Any], folder: Path
) -> None:
    url = fill(folder, page("ferry", A), page("same", SAME), page("other", B))
    with pytest.raises(NearDupError, match="only that it is a copy of") as refused:
        run(B, SAME, "--store", url)
    said = str(refused.value)
    assert f"no text of {SAME}" in said
    assert f"a copy of {A}, similarity 1.00. Compare it with its original, name a file" in said


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.html", "d.jsonl#copy"], "gone.html does not exist"),
        (["d.jsonl#ferry", "gone.jsonl#copy"], "gone.jsonl#copy does not exist"),
        (["d.jsonl#ferry", "d.jsonl#nobody"], "d.jsonl has no document with the id 'nobody'.* d.jsonl#ferry"),
        (["d.jsonl#ferry", "d.jsonl"], "d.jsonl is neither HTML .* name a document: d.jsonl#ID"),
        (["d.jsonl#ferry", "."], "is neither HTML"),
        (["d.jsonl#ferry", "x" * 5000], "xxx does not exist"),
        (["d.jsonl#ferry", "folder.html"], "folder.html cannot be read: "),
        (["d.jsonl#ferry", "binary.html"], "binary.html has no readable page: the body is binary, not HTML"),
        (["d.jsonl#ferry", "binary.txt"], "binary.txt is not UTF-8"),
        (["d.jsonl#ferry", "d.jsonl#copy", "--method", "casade"], "There is no method 'casade'"),
        (["d.jsonl#ferry", "d.jsonl#copy", "--method", "cascade:base=7"], "base must be a number from 0 to 1, not 7"),
        (["d.jsonl#ferry", "d.jsonl#copy", "--store", "couch:x"], "--store is 'couch:x', which names no state"),
        ([A, "d.jsonl#copy", "--store", "memory:"], "memory: is a state in memory, which ends with its crawl"),
    ],
)
def test_what_cannot_be_is_said(run: Callable[..., Any], folder: Path, arguments: list[str], said: str) -> None:
    (folder / "folder.html").mkdir()
    for name in ("binary.html", "binary.txt"):
        (folder / name).write_bytes(b"\x89PNG\0\0\0\0\xff")
    before = set(folder.rglob("*"))
    with pytest.raises(NearDupError, match=said):
        run(*arguments)
    assert set(folder.rglob("*")) == before


def test_wrong_settings_are_said_as_in_a_crawl(run: Callable[..., Any]) -> None:
    with pytest.raises(NearDupError, match=r"There is no setting NEARDUP_METOD\. Did you mean NEARDUP_METHOD\?"):
        run("d.jsonl#ferry", "d.jsonl#copy", NEARDUP_METOD="cascade")


def test_what_the_state_counted_of_a_site_decides_as_in_a_crawl(
    run: Callable[..., list[str]], found: Callable[..., Any], state: str, folder: Path
) -> None:
    """Of a page of the state, of a record with a URL, and of a file whose address is given."""
    with open_state(state) as store:
        for number in range(80):
            store.note_form("harbor.example", in_form=number % 2 == 0)
        judged(
            store, Page("https://harbor.example/3", "航运", text=join_text(*FERRY[:5], *LIBRARY), site="harbor.example")
        )
    (folder / "c.txt").write_text(join_text(*FERRY), encoding="utf-8")

    def forms(*pair: str) -> float:
        answer = found(*pair)
        assert [one["name"] for one in answer["sites"]][:1] == ["harbor.example"]
        return next(float(one["value"]) for one in answer["features"] if one["name"] == "forms")

    share = next(one["forms"] for one in found(A, "d.jsonl#ferry")["sites"])
    assert 0.4 < share < 0.6
    assert forms("d.jsonl#ferry", "d.jsonl#ferry") == pytest.approx(share, abs=0.001)
    assert forms("https://harbor.example/3", "d.jsonl#ferry") == pytest.approx(share, abs=0.001)
    assert forms("d.jsonl#ferry", "https://harbor.example/3") == pytest.approx(share, abs=0.001)
    assert forms("c.txt", "c.txt", "--a-url", A, "--b-url", A) == pytest.approx(share, abs=0.001)
    assert any(line.startswith("By the counts of the state at ") for line in run(A, "d.jsonl#ferry"))


def test_a_state_is_left_out_where_none_fits_or_none_is_wanted(
    run: Callable[..., list[str]], found: Callable[..., Any], state: str
) -> None:
    other = found("d.jsonl#ferry", "d.jsonl#copy", "--method", "simhash")
    assert other["store"] is None
    assert "another recipe" in other["why_no_store"]
    assert found("d.jsonl#ferry", "d.jsonl#copy", "--no-state")["store"] is None
    with pytest.raises(SettingsError, match="--no-state"):
        run("d.jsonl#ferry", "d.jsonl#copy", "--no-state", "--store", state)
    with pytest.raises(SettingsError, match="--no-state"):
        run(A, "d.jsonl#copy", "--no-state")


def test_no_line_of_a_page_looks_like_one_of_ours(run: Callable[..., list[str]], folder: Path) -> None:
    said = ["duplicate (near): B is a copy of A, similarity 1.00.", "2026-01-01 00:00:00 [scrapy_neardup] ERROR: lost"]
    (folder / "evil.txt").write_text("\n".join([*said, join_text(*LIBRARY)]), encoding="utf-8")
    lines = run("evil.txt", "d.jsonl#ferry")
    assert not any(line.startswith(tuple(said)) for line in lines)
    assert [f"  | {one}" in lines for one in said] == [True, True]
