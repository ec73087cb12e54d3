"""The articles and helpers that the tests of the default method share."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import Sketch
from scrapy_neardup.model import Comparison, Explanation, Page
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import shingles

DEFAULTS = CascadeParameters()
NONE: frozenset[int] = frozenset()
#: Sketches so large that their estimates are nearly exact.
EXACT: dict[str, Any] = {"bins": 4096, "bits": 8}

TITLE = "新渡口清晨开航"
FERRY = """河湾镇的新渡口星期六清晨正式开航，第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来。
天还没有亮，码头上就站满了人。卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年，今天的豆浆不收钱。
旧渡船是一九八二年造的木船，去年春天的大水冲断了缆绳，船撞在石墩上沉了下去，两岸的人从此只能绕道上游的铁桥，来回要走四十公里。
镇上原本打算修一座公路桥，勘察队来看过两次，发现河床下面全是流沙，打桩的费用比全镇五年的收入还要多，计划只好搁下。
新船由县里的船厂承造，船身用铝合金焊成，长二十四米，可以同时装下八辆小货车，遇到枯水期也不会搁浅。
船长姓罗，年轻时在海上跑过货轮，退休以后回到老家。他说河里的水比海里的水脾气更怪，每天开船之前都要放一只空瓶子试水。
按照现在的安排，渡船每天往返十四趟，早上五点半开第一班，晚上九点收班，赶集的日子再加四趟。学生凭证件免费，农用车收半价。
柳林村的果农最高兴。往年梨子熟了，运到镇上要颠簸大半天，到了市场已经碰坏三成。现在过河只要七分钟，清早摘下的梨，中午就能摆上县城的柜台。
渡口旁边还盖了一间候船室，墙上挂着旧渡船的照片和那根断掉的缆绳。老人们坐在长椅上，一边等船一边给孩子们讲从前撑篙过河的故事。
负责渡口的何主任说，第一个月先试运行，票价和班次都还可以改，意见箱就钉在候船室门口，谁都可以往里面投纸条。
夜里收班以后，船就系在候船室下面的铁桩上，由住在码头边的一对老夫妻看守。他们养的黄狗认得每一位船员，见了生人才叫。"""
SECOND_FERRY = """下游的沙洲村也要有自己的渡船了。昨天下午，村里的木匠把新船的龙骨抬进晒谷场，全村的孩子都跑来看。
这条船不用铁也不用铝，全部用山上的老杉木，缝隙里填的是桐油和麻丝，要晾足两个月才能下水。
领头的木匠姓尤，今年六十八岁，他的祖父和父亲都是造船的，家里还留着一本画满尺寸的旧账簿。
钱是村民一户一户凑的，出不起钱的人家出力气，两位在外地打工的年轻人寄回来一台二手的柴油机。
沙洲四面是水，夏天涨水的时候孩子们要停课半个月。有了这条船，老师说，以后只有刮台风才会放假。"""
BELL = """石坝小学的铜钟又响了。敲钟的还是从前那位校工，只是他的头发已经全白，要踮起脚尖才够得着拉绳。
这口钟铸于清末，原来挂在山神庙里，庙拆掉以后，乡亲们用八头水牛把它拖到学校，吊在操场边的樟树上。
六年前樟树遭了雷劈，粗枝折断，铜钟跌进泥塘，裂开一道手掌长的口子，从此上课下课只好改放录音。
校友会找遍了全省的作坊，都说补不好。最后是邻县一位做铜锣的师傅，用低温焊料一点一点把裂缝填满，花了整整一个冬季。
补好的钟声音比原先略沉，隔着两座山坡仍旧听得清楚。放牛的少年说，牛群听见钟响，自己就会调头回栏。
学校在操场东侧砌了四根青砖柱，柱顶架起杉木横梁，再也不怕雷电；横梁上刻着捐款人的姓氏，按笔画多少排列。
校长打算让每个班级轮流值日，负责擦拭钟身、检查绳索。低年级的学生个子矮，就负责记录每天敲钟的时刻有没有误差。
揭幕那日来了许多白发老人，其中年纪最大的毕业于民国三十五年，他摸着焊缝说，自己小时候曾经偷偷用弹弓打过它。"""
LIGHTHOUSE = """\
The lighthouse on Gannet Point will be lit again next month, twenty years after its keeper locked the door.
Volunteers have spent three winters scraping salt from the lens, which was ground in 1874 and weighs as much as a van.
The old clockwork that turned it could not be saved, so a retired bicycle maker built a new one out of chains.
Ships no longer need the light, the harbour master says, but the people below it missed the beam on their ceilings.
Visitors may climb the hundred and twelve steps on Sundays, provided they carry a bucket of coal up for the stove."""
MILL = """\
The last water mill on the Arrow Brook ground a sack of flour on Saturday, for the first time in sixty years.
Its wheel had rotted to a ring of black stumps when the Penhale sisters bought the ruin from a bankrupt chicken farmer.
They taught themselves carpentry out of library books, felled four oaks behind the chapel and cut every paddle by hand.
The stones were worse: one had cracked in a frost, and the only quarry that still sold such grit lay beyond two borders.
A lorry driver who remembered the mill from his childhood fetched the new stone for nothing but breakfast.
Neighbours complained at first about the noise, until they noticed that the millpond kept their cellars dry.
The flour is coarse and slightly grey, bakers in the market town say, yet customers queue for the bread before dawn.
Engineers from the water board came to measure the race, shook their heads, and ordered six loaves for the office.
In a dry summer the wheel may stand still for weeks, so the sisters keep a diesel engine under a tarpaulin.
School parties arrive each Thursday, and every child must carry a pail of grain up the ladder to the hopper.
An eel pass was dug beside the weir last autumn, because the old one had been blocked with bricks during the war.
What they would like next, the younger sister admits, is a cat, for the mice have found out about the bread as well."""
ADDED = "另据了解，县里打算明年在下游的沙洲再建一座码头，方便对岸的学校组织学生春游。"

FORM = """{maker}日前向市场监督管理部门备案了召回计划，决定自{date}起召回部分{product}，涉及数量共计{count}。
本次召回范围内的{product}由于{fault}，{harm}，存在安全隐患。{maker}将为召回范围内的用户免费{remedy}，以消除安全隐患。
本次召回活动是在市场监督管理部门启动缺陷调查的情况下开展的。受调查影响，生产者决定采取召回措施，以保护消费者的人身和财产安全。
在完成维修之前，请用户立即停止使用涉及的产品，将产品放置在儿童接触不到的地方，并与就近的服务网点联系，以免发生意外。
用户可以拨打客户服务热线{phone}进行咨询，热线的服务时间为工作日上午九点至下午六点，也可以登录生产者的网站了解本次召回的详细情况。
此外，消费者还可以登录召回信息平台或者关注公众号，了解更多信息，反映召回活动实施过程中的问题或者提交其他缺陷线索。"""

COMMON_CHARACTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"
)
_UNITS = re.compile("[\u4e00-\u9fff]|[A-Za-z]+")


def page(text: str, title: str = TITLE, **more: Any) -> Page:
    return Page("http://river.example/", title, text=text, **more)


def judged(one: Page, other: Page, common: frozenset[int] = NONE, **parameters: Any) -> Comparison:
    """Compare the new page ``one`` with the earlier page ``other``."""
    method = Cascade(CascadeParameters(**parameters))
    return method.compare(method.fingerprint(one), method.fingerprint(other).sketch, common)


def explained(one: Page, other: Page, **parameters: Any) -> Explanation:
    method = Cascade(CascadeParameters(**parameters))
    return method.explain(method.fingerprint(one), method.fingerprint(other).sketch, NONE)


def values(explanation: Explanation) -> dict[str, float]:
    return {feature.name: feature.value for feature in explanation.features}


def unpacked(packed: bytes) -> Sketch:
    return Sketch.unpack(packed, DEFAULTS.bins * DEFAULTS.bits // 8)


def common_keys(one: Page, other: Page, **parameters: Any) -> frozenset[int]:
    method = Cascade(CascadeParameters(**parameters))
    return frozenset(method.fingerprint(one).keys) & frozenset(method.fingerprint(other).keys)


def exact_jaccard(one: str, other: str) -> float:
    a, b = (set(shingles(letters(normalize(text)), DEFAULTS.shingle).tolist()) for text in (one, other))
    return len(a & b) / len(a | b)


def respelled(text: str, share: float, seed: int) -> str:
    """The text, in any script, with that share of its letters replaced by other ones of the same text."""
    dice, chars = random.Random(seed), list(text)
    places = [place for place, char in enumerate(chars) if char.isalpha()]
    own = sorted({chars[place] for place in places})
    for place in dice.sample(places, round(share * len(places))):
        chars[place] = dice.choice([char for char in own if char != chars[place]])
    return "".join(chars)


def reworded(text: str, share: float, seed: int) -> str:
    """The text with that share of its Chinese characters and Latin words replaced by other ones of the same text."""
    count = round(share * len(_UNITS.findall(text)))
    return next(islice(_more_and_more(text, seed), count - 1, None))


def scattered(text: str, similarity: float, seed: int) -> str:
    """The text with characters or words of its own put in place of others, here and there, down to that similarity."""
    return next(found for found in _more_and_more(text, seed) if exact_jaccard(found, text) <= similarity)


def _more_and_more(text: str, seed: int) -> Iterator[str]:
    dice, pieces = random.Random(seed), list(_UNITS.finditer(text))
    own = sorted({piece[0] for piece in pieces})
    changed: dict[int, str] = {}
    for place in dice.sample(range(len(pieces)), len(pieces)):
        changed[place] = dice.choice([unit for unit in own if unit != pieces[place][0]])
        numbered = iter(range(len(pieces)))
        yield _UNITS.sub(lambda piece: changed.get(next(numbered), piece[0]), text)  # noqa: B023  # used at once


def replaced(text: str, other: str, count: int, seed: int) -> str:
    """The text with ``count`` of its paragraphs in a row replaced by as many of the other text."""
    dice, lines, others = random.Random(seed), text.split("\n"), other.split("\n")
    at, start = dice.randrange(len(lines) - count + 1), dice.randrange(len(others) - count + 1)
    lines[at : at + count] = others[start : start + count]
    return "\n".join(lines)


def marks(*given: str) -> IsCommon:
    """A guard that knows these sentences for boilerplate."""
    known = np.array([OPEN.short(letters(normalize(sentence))) for sentence in given], np.uint32)

    def is_common(sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        return np.isin(sentences, known)

    return is_common
