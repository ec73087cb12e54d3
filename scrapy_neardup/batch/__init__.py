"""Archives in batch: the verdicts of ``dedup --counts exact``, made in parts, in bounded memory and on many machines.

A page has a *rank*: the number of its input, then its number in that input. A *part* holds consecutive ranks. Each part
is judged like a small crawl, by the same detector and the same rules, one page after the other. It begins with the
state that the parts before it leave behind, restricted to the rows that its pages ask for. Four kinds of rows decide:

* the records that the page's keys name: of each key the first ``Method.common``, as later pages are not filed under it;
* the newest record at the page's URL, and at the address that it names as canonical;
* additive counts: pages of a site, with a sentence, that are forms; see ``state/exact_counts``;
* the publishers with a sentence, as a set of bits, which is their union.

All of them come from pages of lower rank. A part asks for them by 64-bit hashes. Its pages alone give most of these
(``PartQuestions``). If judging asks for more and an earlier part knows an answer, the part is judged again.

The ``local`` runner judges parts in their order, in one process, while others read. So each part is given what the
parts before it leave in the end. ``spark`` judges all parts at once, in rounds. At first no part knows of another one;
in every further round a part gets the rows that the last round left. Parts with other rows than in the round before are
judged again. When there are none, the verdicts are those of one sequential run. Proof, by induction over the parts: the
first part depends on nobody, so it is right. If all parts before a part are right, so are the rows that it was judged
with: they did not change since. The detector then sees what it would see in a sequential run, and answers alike. After
round n, the first n parts are right and stay so, so the end is reached. On real pages a handful of rounds does.

No partition decides anything: neither connected components nor the number of parts, machines or cores. The parts of an
earlier run come before those of the next one, and are never judged again.

The stages are functions over Arrow tables, which a runner connects:

    read_stretch    an input            -> PAGES         (``pages``)
    PartQuestions   PAGES               -> hashes        (``part``)
    answer          ROWS of some hashes -> GIVEN, without records (``routing``)
    attach          ROWS, GIVEN         -> GIVEN, the records that are named there
    judge_part      PAGES, GIVEN        -> ROWS          (``part``)

Text never leaves its part. A part gets records of some hundred bytes, without text.
"""
