"""A digest of our readers' results on a few sample pages, which identifies the readers beside their version.

``text.samples`` gives the reason for digests. The pages hold the cases on which readers differ: menus, teasers,
bylines, captions, lists, quotes, code, comments, a forum thread, an almost empty page and broken tags. The digest
covers all judged text, so it changes with our own reader too. Data tables are left out: few articles have one, and
versions that read everything else alike differ in their place.

An extractor of the user (NEARDUP_EXTRACTOR) is not tried, as it may know one site alone. Its name and ``__version__``
identify it.
"""

from __future__ import annotations

from functools import cache

from scrapy_neardup.page.extraction import extract
from scrapy_neardup.text.samples import digest

_NEWS = """<!DOCTYPE html>
<html lang="zh-CN"><head><meta charset="utf-8"><title>新渡口清晨开航，第一班船载客三十六位_河湾网</title>
<meta name="keywords" content="渡口,开航，柳林村"><meta name="description" content="河湾镇的新渡口星期六清晨开航。">
<meta property="og:site_name" content="河湾网"><link rel="canonical" href="/news/ferry.html"></head><body>
<header><a href="/"><img src="l.png" alt="河湾网"></a>
<nav><ul><li><a href="/">首页</a></li><li><a href="/z">镇上</a></li>
<li><a href="/s">生意</a></li><li><a href="/t">天气</a></li></ul></nav></header>
<div class="crumb">您的位置：<a href="/">首页</a> &gt; <a href="/z">镇上</a> &gt; 正文</div>
<div id="main"><h1>新渡口清晨开航</h1><p class="meta">2024-05-01 06:12 来源：河湾网 记者 田小雨 责任编辑：老周</p>
<div class="content"><p>河湾镇的新渡口星期六清晨正式开航，第一班船载着36位乘客和他们的行李，从对岸的柳林村慢慢驶来。</p>
<p>卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年，<strong>&ldquo;今天的豆浆不收钱！&rdquo;</strong></p>
<figure><img src="b.jpg"><figcaption>渡船靠岸。田小雨 摄</figcaption></figure>
<p>旧渡船是1982年造的木船，去年春天的大水冲断了缆绳，船撞在石墩上沉了下去；<br>两岸的人从此只能绕道上游的铁桥。</p>
<h2>班次</h2>
<ul><li>成人每位两元。</li><li>自行车免费，三轮车另付一元。</li></ul>
<p>船工们说，冬天水浅的时候班次会减少，具体的时刻贴在码头的木牌上，也可以打电话询问。</p></div>
<div class="share">分享到：微信 微博</div></div>
<aside><h3>热门文章</h3><ul><li><a href="/1">柿子树下的嫁接比赛</a></li><li><a href="/2">老戏院的最后一盏灯</a></li>
<li><a href="/3">铁桥明天起封闭三个月</a></li></ul></aside>
<div class="comments"><h3>评论</h3><div class="comment">说得好，早就该有船了。</div></div>
<footer><p>版权所有 河湾网 未经许可不得转载 备案号 00000000</p></footer><script>var a = "x";</script></body></html>"""

_BLOG = """<!doctype html><html><head><title>Gannet Point Lighthouse to Be Lit Again | The Daybook</title>
<meta name="description" content="Twenty years after its keeper locked the door."></head><body>
<div class="menu"><a href="/">Home</a> | <a href="/about">About</a> | <a href="/archive">Archive</a></div>
<article><header><h1>Gannet Point Lighthouse to Be Lit Again</h1><p>By <a rel="author" href="/k">K. Marlow</a>,
<time datetime="2024-03-02">2 March 2024</time></p></header>
<p>The lighthouse on Gannet Point will be lit again next month, 20&nbsp;years after its keeper locked the door and
handed the key to the harbour&#8217;s office.</p>
<p>Volunteers have spent <em>three winters</em> scraping salt from the lens, which was ground in 1874. The old clockwork
could not be saved, so a retired bicycle maker built one of chains and two flywheels.</p>
<blockquote><p>&ldquo;Ships no longer need the light,&rdquo; the harbour master says, &ldquo;but the people who live
below it missed the beam.&rdquo;</p></blockquote>
<h3>What it takes</h3><ol><li>One lamp of forty watts.</li><li>A hundredweight of chain, oiled <b>every</b> spring.</li>
<li>Somebody to climb 114 steps:<ul><li>in winter, twice a week</li><li>in summer, once</li></ul></li></ol>
<pre><code>beam = 3 * flash(0.5)
wait(12)</code></pre>
<p>The first night is open to everybody; bring a coat, a lantern, and as much patience as the keeper had.</p></article>
<div class="related"><h4>You may also like</h4><p><a href="/a">A ferry for Willow Bend</a></p><p><a href="/b">The last
reel of the Orpheum</a></p></div><div id="cookie">We use cookies. <button>Accept</button></div>
<footer>&copy; The Daybook. All rights reserved. <a href="/privacy">Privacy</a></footer></body></html>"""

_THREAD = """<html><head><title>Which rope for a cable ferry? - Riverfolk forum</title></head><body><table><tr><td>
<a href="/f">Forum</a> &raquo; <a href="/f/7">Boats</a></td></tr></table>
<div class="post"><b>oarsman</b> wrote on 3 May:<div>Ours snapped in the flood. Steel needs grease every week, and the
hemp that my uncle swore by cannot be bought any more. What do you use on a hundred metres of fast water?</div></div>
<div class="post"><b>millie</b> wrote on 4 May:<div class="quote">Ours snapped in the flood.</div><div>Polyester,
braided, twenty millimetres. It stretches for a month and then keeps still. Do not buy the cheap one, it
floats.</div></div>
<div class="post"><b>oarsman</b> wrote on 4 May:<div>Thanks! Ordered.</div></div><form><input name="q">
<input type="submit" value="Reply"></form><p>Powered by nothing in particular</p></body></html>"""

_BROKEN = """<title>今天停航</title><body><div><p>今天风大，渡船停航一天。<p>明天的班次看风的大小再定，<b>请等码头的通知
<div>码头办公室</div></i></p><td>电话 55-1982 <a href=javascript:void(0)>返回</a><span>上一篇：新渡口清晨开航</span>"""

_SHORT = """<html><head><title>Photo: the weir at dusk</title></head><body><nav><a href="/">Home</a></nav>
<img src="weir.jpg" alt="The weir at dusk"><p>The weir at dusk.</p><footer>River pictures, all rights kept</footer>
</body></html>"""

PAGES = (_NEWS, _BLOG, _THREAD, _BROKEN, _SHORT)


@cache
def reader_sample() -> str:
    """Return the digest of all sample pages. It takes some ten milliseconds per page."""
    found = []
    for number, html in enumerate(PAGES):
        page = extract(html, f"https://sample{number}.example/news/page.html", max_html=len(html))
        about = (page.title, *page.keywords, page.description, page.canonical, page.headline, page.reader)
        found += [*about, page.main, page.text]
    return digest(found)
