"""Archives in batch: the verdicts of ``dedup --counts exact``, made in parts, in bounded memory, read on all cores.

A page has a *rank*: the number of its input, then its number in that input. A *part* holds consecutive ranks. The
detector of a crawl judges the pages of a part one after the other. The state of a part begins with the rows that
earlier parts left under the hashes that its pages ask for:

* the records that the page's keys name: of each key the first ``Method.common``, as later pages are not filed under it;
* the newest record at the page's URL, and at the address that it names as canonical;
* counts, which can be added: pages of a site, with a sentence, in a form; see ``counts``;
* the publishers with a sentence, as bits.

Most hashes are known from the pages (``PartPages``). If judging asks for more, and an earlier part knows an answer, the
part is judged again. Most pages find nothing under their hashes. They are unique, and filed without the detector.

Parts are judged in their order, so the detector sees the same as in one sequential run. The number of parts and of
processes that read decides nothing. The parts of an earlier run come before those of the next one.

    read_stretch    an input                 -> PAGES           (``pages``)
    PartPages       PAGES                    -> hashes          (``part``)
    answer          ROWS of some hashes      -> HashRows            (``rows``)
    judge_part      PAGES, answers, records  -> ROWS, JUDGED    (``part``)

A part reads the records that answers name, of some hundred bytes each, from the files of the other parts.
"""
