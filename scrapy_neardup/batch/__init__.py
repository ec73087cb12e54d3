"""Archives in batch: the verdicts of ``dedup --counts exact``, made in parts, in bounded memory and on many machines.

A page has a *rank*: the number of its input, then its number in that input. A *part* holds consecutive ranks. The
detector of a crawl judges the pages of a part one after the other. The state of a part begins with the rows that
earlier parts leave under the hashes that its pages ask for:

* the records that the page's keys name: of each key the first ``Method.common``, as later pages are not filed under it;
* the newest record at the page's URL, and at the address that it names as canonical;
* counts, which can be added: pages of a site, with a sentence, in a form; see ``counts``;
* the publishers with a sentence, as bits.

Most hashes are known from the pages (``PartPages``). If judging asks for more, and an earlier part knows an answer, the
part is judged again. Most pages find nothing under their hashes. They are unique, and filed without the detector.

On one machine parts are judged in their order. Spark judges all parts at once, in rounds. In the first round no
part knows of another one. In every further round a part gets the rows that the last round left. Parts that get other
rows than before are judged again, until no part does. Then all verdicts are as in one sequential run. Proof, by
induction over the parts: the first part depends on nobody, so it is right. If all parts before a part are right, the
part was judged with the right rows, because these did not change since. So the detector sees the same as in a
sequential run. After round n, the first n parts are right and stay so. On real pages a handful of rounds does.

Connected components, and the number of parts, machines and cores decide nothing. The parts of an earlier run come
before those of the next one, and are never judged again.

    read_stretch    an input                 -> PAGES           (``pages``)
    PartPages       PAGES                    -> hashes          (``part_pages``)
    answer          ROWS of some hashes      -> ROWS            (``rows``)
    judge_part      PAGES, answers, records  -> ROWS, JUDGED    (``judging``)
    find_shared     PAGES, JUDGED            -> shared sentences (``judging``)

A part reads the records that answers name, of some hundred bytes each, from the files of the other parts.
"""
