"""The default method in several languages and scripts, and on texts with hardly a letter."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import permutations

import pytest

from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.model import Kind
from scrapy_neardup.text.normalize import letters, normalize
from tests.methods.cascade_pages import LIGHTHOUSE, MILL, common_keys, exact_jaccard, judged, page, respelled, reworded

#: Of each language an article, a title for its copies, and another article.
ARTICLES = {
    "English": (MILL, "Flour again on the brook", LIGHTHOUSE),
    "Japanese": (
        """港町の古い銭湯が、来月から子どもたちの図書室に生まれ変わる。湯船だった場所には畳が敷かれ、番台は貸し出しの机になる。
この銭湯は昭和のはじめに漁師たちが金を出し合って建てたもので、煙突は沖から帰る船の目印にもなっていた。
七年前に最後の主人が倒れてから、建物は物置として使われ、屋根瓦が落ちるたびに隣の豆腐屋が拾って積んでおいた。
改修を思いついたのは、その豆腐屋の娘だった。東京の設計事務所を辞めて戻り、ひと夏かけて壁の富士山を洗ったという。
本棚は廃校になった小学校の下駄箱を使う。高さがちょうどよく、ひとつひとつの扉に、昔の児童の名札がまだ残っている。
開館は毎週火曜と土曜の午後で、飲み物の持ち込みは自由。ただし、猫を連れてくるときは事前に番台へ知らせてほしいそうだ。""",
        "富士山の下で本を読む",
        """山あいの集落で、四十年ぶりに狂言の舞台が組まれた。柱は村の杉、幕は廃業した染物屋の蔵から出てきた藍染めである。
演じるのは中学生六人で、師匠役は郵便配達をしていた八十歳の男性。台詞をひとつ忘れるたびに、観客席の老人たちが声をそろえて教えた。""",
    ),
    "Thai": (
        """ตลาดน้ำบ้านคลองสนเปิดอีกครั้งเมื่อเช้าวันเสาร์ หลังจากปิดไปนานเพราะประตูระบายน้ำเก่าพังลงมาขวางทางเรือ
แม่ค้าขนมครกพายเรือมาถึงเป็นลำแรกก่อนฟ้าสาง เธอเล่าว่าเตาดินเผาใบนี้เป็นของยาย และไม่เคยดับไฟนานขนาดนี้มาก่อน
ชาวสวนนำส้มโอ มะพร้าว และกล้วยตากมาวางขายเต็มสองฝั่ง ราคายังเท่าเดิมเหมือนก่อนปิดตลาด แต่ห้ามใช้ถุงพลาสติกทุกชนิด
ช่างไม้ประจำวัดใช้ไม้ตะเคียนจากศาลาหลังเก่ามาทำสะพานใหม่ เดินแล้วไม่โยก เด็กจึงวิ่งข้ามไปมาตลอดทั้งวันจนพระต้องออกมาเตือน
ผู้ใหญ่บ้านบอกว่าต่อไปจะมีเรือรับส่งนักเรียนผ่านตลาดทุกเย็น และกำลังหาคนขับเรือที่ตื่นเช้าและร้องเพลงได้ด้วย""",
        "เสียงพายกลับมาแล้ว",
        """โรงหนังกลางแปลงของอำเภอกำลังจะฉายม้วนสุดท้าย เจ้าของเป็นชายชราที่ขับรถกระบะตระเวนไปตามงานวัดมาตั้งแต่หนุ่ม
เครื่องฉายหนักเท่าควายหนึ่งตัว เขาว่า และกินน้ำมันมากกว่ารถเสียอีก ลูกชายอยากให้ขายเป็นเศษเหล็ก แต่หลานสาวขอเก็บไว้
คืนวันศุกร์นี้ผู้ชมต้องนำเสื่อมาเอง ใครมีพากย์เสียงได้ให้มาลองไมโครโฟนก่อนพระอาทิตย์ตก""",
    ),
}
each_language = pytest.mark.parametrize("language", ARTICLES)


@each_language
def test_an_edited_copy_under_another_title_is_found_and_a_duplicate(language: str) -> None:
    text, title, _ = ARTICLES[language]
    assert len(letters(normalize(text))) >= 300
    edit = reworded if language == "English" else respelled
    original = page(text, text[:16], site="river.example")
    for seed in range(12):
        copy = page(edit(text, 0.02, seed), title, site="mirror.example")
        found = judged(copy, original)
        assert (found.duplicate, found.kind) == (True, Kind.RETITLED), (seed, found)
        assert judged(original, copy).duplicate, seed
        assert common_keys(copy, original), seed
    assert judged(page(text.split("\n", 1)[1], title), page(text, title)).duplicate, "without a paragraph"


@each_language
def test_another_article_of_the_language_is_no_copy_and_a_common_sentence_is_shown(language: str) -> None:
    text, title, other = ARTICLES[language]
    assert exact_jaccard(text, other) < 0.05
    for titles in ((title, title), (title, other[:16]), ("", "")):
        one, two = page(text, titles[0]), page(other, titles[1])
        assert not judged(one, two).duplicate
        assert not judged(two, one).duplicate
        assert titles[0] == titles[1] != "" or not common_keys(one, two)
    first = text.split("\n")[0]
    shown = Cascade().shared(page(f"{other}\n{first}"), Cascade().fingerprint(page(first)).sketch)
    assert shown
    assert all(passage in first for passage in shown)


TRADITIONAL = (
    "鎮上的老鐵匠鋪在臘月重新開爐，掌錘的是老鐵匠的孫女，她在城裡學過機械，卻說最喜歡聽風箱的聲音。\n"
    "爐膛還是祖父砌的，裂縫用黃泥補過三次；鐵砧從河灘挖回來的時候，半邊已經陷進蘆葦叢裡，鏽得像塊爛木頭。\n"
    "她打的第一件東西是一把鐮刀，送給隔壁種蓮藕的劉嬸，第二件是學校旗桿頂上的鐵葫蘆，颳風的時候會輕輕轉動。\n"
    "縣裡的博物館想收藏那隻風箱，她搖頭說還要用；不過答應每個星期讓館裡的講解員帶學生來看一次，看完每人拉十下風箱。"
)
SIMPLIFIED = (
    "镇上的老铁匠铺在腊月重新开炉，掌锤的是老铁匠的孙女，她在城里学过机械，却说最喜欢听风箱的声音。\n"
    "炉膛还是祖父砌的，裂缝用黄泥补过三次；铁砧从河滩挖回来的时候，半边已经陷进芦苇丛里，锈得像块烂木头。\n"
    "她打的第一件东西是一把镰刀，送给隔壁种莲藕的刘婶，第二件是学校旗杆顶上的铁葫芦，刮风的时候会轻轻转动。\n"
    "县里的博物馆想收藏那只风箱，她摇头说还要用；不过答应每个星期让馆里的讲解员带学生来看一次，看完每人拉十下风箱。"
)
needs_opencc = pytest.mark.skipif(find_spec("opencc") is None, reason="OpenCC is an extra")


@needs_opencc
def test_with_simplified_a_copy_in_the_other_script_is_found_and_a_duplicate() -> None:
    for seed in range(6):
        text = respelled(TRADITIONAL, 0.02, seed) if seed else TRADITIONAL
        one, other = page(text, "老鐵匠鋪重新開爐"), page(SIMPLIFIED, "老铁匠铺重新开炉")
        method = Cascade(CascadeParameters(simplified=True))
        for new, old in ((one, other), (other, one)):
            found = judged(new, old, simplified=True)
            assert (found.duplicate, found.identical) == (True, seed == 0), f"seed {seed}"
            assert len(common_keys(new, old, simplified=True)) >= 2, f"seed {seed}"
            shared = method.shared(new, method.fingerprint(old).sketch)
            assert all(passage in new.text for passage in shared), f"seed {seed}"
        assert method.shared(page(TRADITIONAL), method.fingerprint(other).sketch), f"seed {seed}"
    assert not judged(page(TRADITIONAL), page(SIMPLIFIED)).duplicate, "without it the other script is another text"


HARDLY_ANY = {
    "empty": "",
    "white space": " \n\u3000\t",
    "punctuation": "……。！？——，；“”",
    "emoji": "🚢🌊🚢 🎉\n👩‍👩‍👧",
    "one letter": "船",
    "one letter repeated": "船" * 3000,
    "one letter on many lines": "a\n" * 800,
    "one sentence repeated": "今天风大，渡船停航一天。" * 60,
    "a number": "13",
    "combining marks": "ั" * 500,
}


def test_two_texts_with_hardly_a_letter_are_copies_only_by_the_same_letters() -> None:
    body = {name: letters(normalize(text)) for name, text in HARDLY_ANY.items()}
    prints = {name: Cascade().fingerprint(page(text, "渡口开航")) for name, text in HARDLY_ANY.items()}
    for one, other in permutations(HARDLY_ANY, 2):
        found = Cascade().compare(prints[one], prints[other].sketch, frozenset())
        assert found.duplicate == (body[one] == body[other]), (one, other)
