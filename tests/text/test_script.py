"""Traditional characters read as simplified ones, and stop words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.text.lexicon import read_stop_words
from scrapy_neardup.text.normalize import normalize, simplify

TRADITIONAL = (
    "鎮上的老戲院在週末放映了最後一場電影，放映師把那台用了四十年的機器擦得發亮，然後親手關掉了燈。\n"
    "觀眾坐滿了樓上樓下，有人帶著當年的票根，有人帶著孫子，電影放到一半的時候外面下起了大雨，沒有人離開。\n"
    "散場之後，老人們圍著放映機照相，他們說以後想看電影，就要坐一個小時的車到縣城裡去了。"
)
SIMPLIFIED = (
    "镇上的老戏院在周末放映了最后一场电影，放映师把那台用了四十年的机器擦得发亮，然后亲手关掉了灯。\n"
    "观众坐满了楼上楼下，有人带着当年的票根，有人带着孙子，电影放到一半的时候外面下起了大雨，没有人离开。\n"
    "散场之后，老人们围着放映机照相，他们说以后想看电影，就要坐一个小时的车到县城里去了。"
)


def test_traditional_and_simplified_become_one_text() -> None:
    assert normalize(TRADITIONAL, simplified=True) == normalize(SIMPLIFIED, simplified=True)
    assert normalize(TRADITIONAL) != normalize(SIMPLIFIED)
    for text in ["", "abc 123", "ひらがな", "船\ud800来", "镇上的老戏院"]:
        assert simplify(text).encode("utf-8", "replace") == text.encode("utf-8", "replace")


def test_every_method_with_simplified_finds_the_copy_in_the_other_script() -> None:
    for name in METHODS:
        one, other = (
            Page("http://a.example/", "老戲院", text=TRADITIONAL),
            Page("http://b.example/", "老戏院", text=SIMPLIFIED),
        )
        method = make_method(name, {"simplified": True})
        found = method.compare(method.fingerprint(one), method.fingerprint(other).sketch, frozenset())
        assert (found.duplicate, found.identical) == (True, True), name
        assert set(method.fingerprint(one).keys) & set(method.fingerprint(other).keys), name
        assert method.shared(one, method.fingerprint(other).sketch), name
        assert "opencc" in method.recipe()["script"], name
        assert "script" not in make_method(name, {}).recipe()


@pytest.mark.slow
def test_without_opencc_the_option_is_refused_with_the_cure() -> None:
    code = (
        "import sys; sys.modules['opencc'] = None\n"
        "from scrapy_neardup.methods import make_method\n"
        "make_method('cascade', {})\n"
        "try: make_method('cascade', {'simplified': True})\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("SettingsError ")
    assert 'pip install "scrapy-neardup[opencc]"' in done.stdout


def test_stop_words_are_ours_or_those_of_a_file(tmp_path: Path) -> None:
    assert {"的", "我们", "the", "and"} <= read_stop_words()
    path = tmp_path / "stop.txt"
    path.write_bytes("\ufeff渡口\r\nＦerry # a boat\n# nothing\n\n".encode())
    assert read_stop_words(str(path)) == {"渡口", "ferry"}
    (tmp_path / "gbk.txt").write_bytes("渡口".encode("gbk"))
    for wrong in (tmp_path / "gbk.txt", tmp_path / "none.txt"):
        with pytest.raises(SettingsError, match=r"stop words in .* cannot be read .*UTF-8"):
            read_stop_words(str(wrong))
