"""Pages for every reader, and a hostile one."""

from __future__ import annotations

PARAGRAPHS = [
    "The ferry of the town sails again after seven long months, and the first boat carried twenty-three passengers.",
    "The old ferryman stood at the rail and said that he had waited for this day since the flood of last autumn.",
    "Children from three villages no longer have to walk the fifteen kilometres by the iron bridge to their school.",
]
ASIDE = "Readers may send us photographs of the river until the last day of the month"
HEAD = (
    "<title>The ferry sails again - The River Daybook</title><meta name=keywords content='ferry, river'>"
    "<meta name=description content='After seven months.'><link rel=canonical href='/ferry'>"
)
NAVIGATION = "<nav><a href='/'>Home</a> | <a href='/news'>News</a></nav>"
FOOTER = "<footer><p>All rights reserved by the Daybook</p></footer>"
LINKS = "<ul><li><a href='/1'>The bridge is closed</a></li></ul>"
BODY = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)
ARTICLE = (
    f"<html><head>{HEAD}</head><body>{NAVIGATION}<article><h1>The ferry sails again</h1>{BODY}</article>"
    f"<aside><p>{ASIDE}</p></aside>{LINKS}<p>* * *</p>{FOOTER}</body></html>"
)
#: Most text is outside the article.
PROSE = (
    f"<html><body><article>{BODY}</article>"
    + "".join(f"<div class=related><div>Shop {n} of Mill Street sells {n} loaves</div></div>" for n in range(1, 60))
    + "</body></html>"
)
NONE = f"<html><body>{NAVIGATION}{FOOTER}</body></html>"

HOSTILE = f"""<html><head><title>Evil <script>alert('title')</script>&#27;[2J</title>
<meta http-equiv=refresh content="0;url=https://evil.example/"><base href="https://evil.example/">
<link rel=stylesheet href="https://evil.example/x.css">
<style>.known {{ display: none }} body {{ background: url(https://evil.example/y.png) }}</style>
<meta name=description content='"><img src=x onerror=alert(2)>'></head>
<body onload="alert(3)" class=known id=known style="background:url(https://evil.example/z.png)">
<script>document.title = 'taken'</script>
<nav><a href="/a">Home</a> <a href="javascript:alert(4)">News</a> <a href="JaVa&#9;ScRiPt:alert(5)">Sea</a></nav>
<h1 onclick="alert(6)">The ferry&#27;[31m sails&#x202e; again</h1>{BODY}
<p><b onmouseover="alert(7)">Twenty-three</b> passengers<img src="https://evil.example/i.png" onerror="alert(8)"></p>
<form action="https://evil.example/post"><p>Leave your name here</p><input name=q autofocus onfocus="alert(9)">
<button formaction="javascript:alert(10)">go</button></form>
<svg onload="alert(11)"><script>alert(12)</script><a xlink:href="javascript:alert(13)"><text>svg</text></a></svg>
<math><mtext><style><img src=x onerror=alert(14)></style></mtext></math>
<iframe src="https://evil.example/f" srcdoc="<script>alert(15)</script>"></iframe><object data=x.swf></object>
<noscript><p title="</noscript><img src=x onerror=alert(16)>">nothing</p></noscript>
<xmp><img src=x onerror=alert(17)></xmp><own-element onclick="alert(18)">A line in an element of its own</own-element>
<a href="data:text/html,<script>alert(19)</script>">data</a> <a href="vbscript:alert(20)">basic</a>
<div style="display:none">hidden words</div><p hidden>hidden words</p><template><p>hidden words</p></template>
<video src="https://evil.example/v.mp4" onerror="alert(21)"></video><embed src="https://evil.example/e">
<pre>one line of a listing
&lt;script&gt;alert(22)&lt;/script&gt;</pre>
<span class=article>no article, whatever its class says of it</span>
{FOOTER}</body></html>"""
