"""The decision of cascade: whether a new page is a copy of an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import cached_property
from typing import NamedTuple

from scrapy_neardup.methods.cascade.features import Features, compare, overlap
from scrapy_neardup.methods.cascade.parameters import FIXED, CascadeParameters
from scrapy_neardup.methods.cascade.site import Ruling, SiteEvidence, compare_on_site
from scrapy_neardup.methods.cascade.sketch import HEAD, NUMBER, Sketch
from scrapy_neardup.model import Fingerprint, Kind


class Decision(NamedTuple):
    """The answer for two pages, and the reason as a sentence."""

    duplicate: bool
    sentence: str


class PairJudge:
    """Judges a ``new`` page against an ``earlier`` one.

    The first of ``RULES`` that applies answers. If it finds no copy, ``_is_within`` may find one all the same. One of
    ``CHECKS`` may reject a copy. ``common``: keys that too many originals have, so they prove nothing.
    """

    def __init__(
        self, parameters: CascadeParameters, fingerprint: Fingerprint, new: Sketch, earlier: Sketch, common: Set[int]
    ) -> None:
        self.new = new
        self.earlier = earlier
        #: Both sites are known and the same.
        self.same_site = new.site == earlier.site > 0
        #: They are the same, or one is unknown.
        self.may_be_one_site = self.same_site or not (new.site and earlier.site)
        self.fingerprint = fingerprint
        self._common = common
        counts = fingerprint.site
        #: Share of the site's pages that look like a page under another title; 0 between sites.
        self.share_of_forms = counts.template_share() if counts and self.may_be_one_site else 0.0
        # Outlets retitle agency texts, so of unknown sites more pages must look alike.
        least = parameters.catalogue if self.same_site else max(parameters.catalogue, FIXED.unknown_catalogue)
        # The titles tell items apart, so without one nobody knows.
        self.is_on_catalogue = self.share_of_forms >= least and bool(new.words and earlier.words)
        self.parameters = parameters.on_catalogue() if self.is_on_catalogue else parameters

    @cached_property
    def texts(self) -> Features:
        """The features of the texts, articles and all around them."""
        return compare(self.new, self.earlier, self.fingerprint, self._common, self.parameters)

    @cached_property
    def features(self) -> Features:
        """The features that decide: of the texts, or of the articles if these are more similar or quite different."""
        new, earlier = self.new, self.earlier
        if new.article is None and earlier.article is None:
            return self.texts
        views = new.article_view(), earlier.article_view()
        articles = compare(*views, self.fingerprint, self._common, self.parameters, articles=True)
        differ = bool(new.article and earlier.article) and articles.similarity < FIXED.articles_apart
        return articles if differ or articles.similarity > self.texts.similarity else self.texts

    @property
    def in_form(self) -> bool:
        """Whether they look alike, may be of one site, and a title word of one is missing in the other."""
        if not self.may_be_one_site or self.same_article or self.new.words == self.earlier.words:
            return False  # before the features are asked
        return self.texts.similarity >= FIXED.alike and self.texts.gone > 0

    @property
    def same_article(self) -> bool:
        """Whether the articles are equal letter by letter; of a page without an article the whole text counts."""
        return self.new.body == self.earlier.body

    @property
    def has_other_title(self) -> bool:
        """Whether both titles have several words, but hardly a common one."""
        have_titles = len(self.new.words) > 1 and len(self.earlier.words) > 1
        return have_titles and self.texts.title < FIXED.other_notice

    @property
    def is_equal(self) -> bool:
        """Whether equal letters are enough for a copy. They are not if the article is a small part of its page."""
        article = self.new.article
        return self.same_article and (article is None or article.shingles >= FIXED.least_article)

    @property
    def lists_other_links(self) -> bool:
        """Whether both articles are lists of links, and most of these are different."""
        new, earlier = self.new.lines, self.earlier.lines
        return new is not None and earlier is not None and new.lists_others(earlier)

    @property
    def has_one_number(self) -> bool:
        """Whether both URLs have the same number of an article of one site."""
        return self.same_site and self.new.url_number == self.earlier.url_number > 0

    @property
    def is_short(self) -> bool:
        """Whether both texts are so short that every sentence counts."""
        return self.features.length < self.parameters.short

    @property
    def is_certain(self) -> bool:
        """Whether the new page is close enough to be also a copy of the earlier page's original."""
        return self.is_equal or self.is_short or self.features.similarity >= self.parameters.certain

    @cached_property
    def site_evidence(self) -> SiteEvidence | None:
        """The lines of two pages of one site that were read from HTML."""
        if self.new.lines is None or self.earlier.lines is None or not self.same_site:
            return None
        features = self.features
        # A title on both pages, beside headlines that differ, names the site.
        titles_alike = self.new.title != self.earlier.title and features.title >= FIXED.titles_alike
        return compare_on_site(
            self.new.lines,
            self.earlier.lines,
            self.fingerprint.site,
            common_headlines=features.headlines,
            titles_alike=titles_alike and not features.title_numbers,
            same_article=self.same_article,
            similarity=features.similarity,
        )

    def decision(self) -> Decision:
        """Return the answer."""
        found = next(filter(None, (rule(self) for rule in RULES)))
        if not found.duplicate:
            found = _is_within(self) or found
        return next(filter(None, (check(self) for check in CHECKS)), found) if found.duplicate else found

    def kind(self, *, duplicate: bool) -> Kind | None:
        """Return the kind of copy, or how two pages that are no copies are alike."""
        features, p, new, earlier = self.features, self.parameters, self.new, self.earlier
        if duplicate:
            return Kind.RETITLED if features.title < p.retitled else Kind.NEAR
        # From HTML a short page has more or less text around it, so of two notices neither is an excerpt.
        may_be_excerpt = features.smaller >= p.short or new.lines is None or earlier.lines is None
        is_in_range = FIXED.for_containment <= features.similarity < p.least
        if features.containment >= p.excerpt and is_in_range and may_be_excerpt:
            return Kind.EXCERPT
        return Kind.SAME_TITLE if new.has_title_of(earlier) else None

    def is_minor_update(self) -> bool:
        """Whether the new page changes only a few letters of the earlier one, the delivered version of the same URL.

        Both have one title. Of a short text all numbers are the same. A longer text may have others in short lines: a
        counter, a date.
        """
        new, earlier, title = self.new, self.earlier, self.fingerprint.title
        if title is None or new.title != earlier.title or self.has_grown() or self.lists_other_links:
            return False
        whole, bits = self.fingerprint.whole, self.parameters.bits
        if new.article and earlier.article:
            new, earlier, whole = new.article_view(), earlier.article_view(), b""
        found = overlap(new, earlier.minwise, earlier.shingles, earlier.whole, whole, bits)
        most = FIXED.minor_letters_unspaced if title.is_unspaced else FIXED.minor_letters
        changed, longer = max(found.ours, found.theirs) - found.in_both, abs(found.ours - found.theirs)
        if found.similarity < FIXED.minor or changed > most or longer > most / 2:
            return False
        changes = sum(a != b for a, b in zip(new.order, earlier.order, strict=False))
        if len(new.order) != len(earlier.order) or changes > FIXED.minor_sentences:
            return False
        if new.numbers == earlier.numbers:
            return True
        lines = title.lines_with_numbers(new.ends - earlier.ends)
        is_long = new.numbers.is_long and earlier.numbers.is_long
        return is_long and bool(lines) and max(map(len, lines)) <= most

    def has_grown(self) -> bool:
        """Whether the new text contains the earlier one and more. The articles are not compared here.

        A thread grows so if its first post counts as the article. A few new teasers are no growth.
        """
        longer = self.new.whole > FIXED.grown * self.earlier.whole
        return longer and self.texts.whole_containment >= self.parameters.excerpt


Rule = Callable[[PairJudge], "Decision | None"]


# The rules: each returns a decision if it applies.


def _are_bulletins(pair: PairJudge) -> Decision | None:
    """Two short texts that may be of one site are two notices if their titles are quite other, or give other numbers.

    Such a text says the same every day, or of two people. On one known site it may be longer, if it is equal and the
    numbers differ.
    """
    same_titles = pair.new.words == pair.earlier.words
    if same_titles or not pair.may_be_one_site or pair.has_one_number:  # then the features are not needed
        return None
    features = pair.texts
    may_be_long = pair.same_site and pair.same_article and features.title_numbers
    most = FIXED.bulletin if may_be_long else pair.parameters.short - 1
    if features.length > most or not (pair.has_other_title or features.title_numbers):
        return None
    return Decision(False, "The texts may be bulletins of one site: they are short, and their titles differ.")


def _are_equal(pair: PairJudge) -> Decision | None:
    """Equal texts are copies."""
    if not pair.is_equal:
        return None
    what = "articles on both pages" if pair.new.article and pair.earlier.article else "texts"
    return Decision(True, f"The {what} are identical.")


def _has_little_left(pair: PairJudge) -> Decision | None:
    """An earlier page that is mostly boilerplate by now has too little left for an estimate."""
    if pair.features.left >= FIXED.enough_left:
        return None
    return Decision(False, "Most of the earlier page is boilerplate. Too little is left to compare.")


def _were_retitled(pair: PairJudge) -> Decision | None:
    """Pages with one number in their URLs are one article, if the earlier one contains most of the new one.

    An editor changed the title, and with it the words of the URL. A new number in text or title is news. On a
    catalogue the variants of a product may share the number.
    """
    if not pair.has_one_number or pair.is_on_catalogue:  # then the features are not needed
        return None
    features, new, earlier = pair.features, pair.new, pair.earlier
    has_numbers = any(word & NUMBER for word in new.words - earlier.words) or new.numbers.adds_to(earlier.numbers)
    if features.similarity < pair.parameters.base or features.contained < FIXED.contained_retitled or has_numbers:
        return None
    share = f"at least {FIXED.contained_retitled:.0%}"
    return Decision(True, f"Both URLs have the number of one article, and the earlier page contains {share} of it.")


def _are_short(pair: PairJudge) -> Decision | None:
    """Short texts with the same numbers are copies if one contains every sentence of the other.

    Other words do not matter if no title word is missing, and on one site hardly a letter changes.
    """
    if not pair.is_short:
        return None
    features, p = pair.features, pair.parameters
    have_same_numbers, is_within = pair.new.numbers == pair.earlier.numbers, features.sentences == 1.0
    is_edited = not features.gone and (not pair.may_be_one_site or features.similarity > p.short_certain)
    duplicate = have_same_numbers and features.similarity >= p.least and (is_within or is_edited)
    if duplicate:
        what = "every sentence of one page is in the other" if is_within else "only the wording differs"
        reason = f"{what}, with the same numbers"
    elif not have_same_numbers:
        reason = "the numbers differ"
    elif is_within:
        reason = "one page says much more"
    else:
        reason = "a title word is missing" if features.gone else "the sentences differ"
    return Decision(duplicate, f"In texts this short, one word makes another notice. Here {reason}.")


def _differ_with_boilerplate(pair: PairJudge) -> Decision | None:
    """Pages are no copies if their texts are unlike with boilerplate, unless certain and one contains the other."""
    features, p = pair.features, pair.parameters
    if features.whole >= p.least or (features.similarity >= p.certain and features.whole_containment >= p.excerpt):
        return None
    return Decision(False, f"The similarity of the whole texts, with boilerplate, is below {p.least:g}.")


def _are_two_notices(pair: PairJudge) -> Decision | None:
    """Each title has a word that the other page lacks; or the titles give other numbers, and the openings differ.

    The rest may be a template or a disclaimer. Very similar pages are exempt, but not from the first in a form.
    """
    features = pair.features
    is_certain = features.similarity >= pair.parameters.certain
    if features.gone == 1.0 and (features.form or not is_certain):
        return Decision(False, "Each page's title has a word that the other page lacks. They are two notices.")
    if features.title_numbers and not is_certain and not pair.new.opens_like(pair.earlier):
        return Decision(False, "The titles give other numbers, and the openings differ. They are two notices.")
    return None


def _have_other_names(pair: PairJudge) -> Decision | None:
    """Pages that may be of one site are about two things if each title has a word that is nowhere in the other page.

    On one site nearly equal pages are exempt, as one advert under many titles, but not on a catalogue. Otherwise an
    earlier page, this one or a third one, must show a form: it looks like the new page, and a title word is gone. No
    nearly equal form is long. Pages from HTML have headlines and lines as evidence.
    """
    if pair.new.words == pair.earlier.words or pair.new.lines is not None:  # then the features are not needed
        return None
    features = pair.features
    if not features.other_name or features.reworded:
        return None
    may_be_advert = features.similarity >= FIXED.one_advert and not pair.is_on_catalogue
    is_in_form = pair.fingerprint.in_form or pair.in_form
    if pair.same_site:
        is_exempt = may_be_advert and (features.length > FIXED.bulletin or not is_in_form)
    else:
        is_exempt = not is_in_form
    if is_exempt:
        return None
    reason = "The common text may be a form, and each title has a word that the other page lacks."
    return Decision(False, f"{reason} They are about two things.")


def _give_other_numbers(pair: PairJudge) -> Decision | None:
    """Pages are two notices if most of their numbers differ, or fewer in a form.

    A form is filled in with another date, version or price, and little else differs. A copy repeats the numbers. In a
    form it is enough if each text has a number that the other lacks; long texts under one title are exempt, as a copy
    may correct a number. Where the titles give different numbers, any difference in the numbers of the texts is enough.
    Texts from HTML may hold counters: there only this last counts, and most numbers of two articles of one site.
    """
    new, earlier, features = pair.new, pair.earlier, pair.features
    ours, theirs, same_title = new.numbers, earlier.numbers, bool(features.same_title)
    in_form = bool(features.form and new.words and earlier.words)
    if in_form and features.title_numbers and not same_title:
        differ = ours != theirs
    elif new.lines or earlier.lines:
        are_articles = pair.same_site and bool(new.article and earlier.article)
        differ = are_articles and features.numbers >= FIXED.other_numbers
    else:
        may_be_bulletin = features.length <= FIXED.bulletin if pair.same_site else not ours.is_long
        contradict = in_form and (may_be_bulletin or not same_title) and ours.contradicts(theirs)
        may_differ = pair.may_be_one_site or features.title_numbers  # of two sites each has other dates in its frame
        differ = contradict or (may_differ and features.numbers >= FIXED.other_numbers)
    return Decision(False, "The pages give other numbers. They are two notices.") if differ else None


def _reach_score(pair: PairJudge) -> Decision | None:
    """The weighted sum of the features decides."""
    base, found = pair.parameters.base, score(pair.features, pair.parameters)
    duplicate = found >= base
    return Decision(duplicate, f"The score {found:.3f} {'reaches' if duplicate else 'is below'} {base:g}.")


#: The first rule that applies decides.
RULES: tuple[Rule, ...] = (
    _were_retitled,
    _have_other_names,
    _are_bulletins,
    _are_equal,
    _has_little_left,
    _are_short,
    _differ_with_boilerplate,
    _are_two_notices,
    _give_other_numbers,
    _reach_score,
)


# The checks: each returns a decision if it rejects a copy.


def _contains_too_little(pair: PairJudge) -> Decision | None:
    """The earlier page must contain most of the new one, unless both are known to be of one site, or are equal."""
    features = pair.features
    if pair.same_site or pair.is_equal:
        return None
    needed = FIXED.contained if pair.is_short or _may_be_one_article(pair) else FIXED.contained_retitled
    if features.contained >= needed:
        return None
    what = "of a short text" if pair.is_short else "with such titles"
    sentence = f"The earlier page contains {features.contained:.0%} of this one. A copy {what} needs {needed:.0%}."
    return Decision(False, sentence)


def _may_be_one_article(pair: PairJudge) -> bool:
    """Whether the titles are alike, or both missing, or both texts have the words of both titles."""
    new, earlier, features = pair.new, pair.earlier, pair.features
    if not (new.words or earlier.words):
        return True
    have_titles = new.words and earlier.words
    if have_titles and features.title >= pair.parameters.retitled:
        return True
    return bool(new.words_in_text and earlier.words_in_text) and not features.gone


def _share_a_template(pair: PairJudge) -> Decision | None:
    """The common text of two pages of one site may be its template."""
    evidence = pair.site_evidence
    if evidence is None or evidence.ruling is not Ruling.DIFFERENT:
        return None
    return Decision(False, f"The common text may be a template, so the page passes. {evidence}")


def _list_other_links(pair: PairJudge) -> Decision | None:
    """Two lists of links under one introduction are two articles: a bibliography, a playlist, finds of the week."""
    if not pair.lists_other_links:
        return None
    return Decision(False, "The texts are alike, but the articles list other links.")


#: The first check that rejects a copy decides.
CHECKS: tuple[Rule, ...] = (_contains_too_little, _share_a_template, _list_other_links)


def _is_within(pair: PairJudge) -> Decision | None:
    """One page of a site contains the other under the same headline: a copy, although the rules found none."""
    new, earlier = pair.new.lines, pair.earlier.lines
    if new is None or earlier is None or new.headlines.isdisjoint(earlier.headlines):
        return None
    evidence = pair.site_evidence
    if evidence is None or evidence.ruling is not Ruling.COPY:
        return None
    return Decision(True, f"One page contains the other, under the same headline. {evidence}")


def weights(p: CascadeParameters) -> dict[str, float]:
    """Return the weight of each feature of the score."""
    return {
        "similarity": 1.0,
        "form": -p.by_site,
        "gone": -2 * p.by_gone,  # a page with a missing word counts one half
        "same_title": p.by_title,
        "reworded": p.by_reworded,
    }


def score(features: Features, p: CascadeParameters) -> float:
    """Return the weighted sum of the features."""
    found: float = sum(weight * getattr(features, name) for name, weight in weights(p).items())
    return found


#: Tolerance for rounding, which differs between machines.
_MARGIN = 1e-9


class Bound:
    """A fast check whether two pages can be alike, by the head and min-wise part of the earlier sketch.

    Most pages with a common key share one sentence and nothing else. This check takes a fiftieth of a full comparison.
    It tests only the lowest limits of all rules, so it rejects no pair that ``PairJudge`` would accept.
    """

    def __init__(self, p: CascadeParameters) -> None:
        self._bits = p.bits
        # The lowest limits of all rules. Pages with equal titles or headlines pass before, so only reworded text can
        # raise the score here. The catalogue asks for more.
        scored = p.base + min(0.0, p.by_site - p.by_reworded)
        least = min(FIXED.alike, scored, p.least)
        #: Least similarity; least similarity and containment of an excerpt.
        self._bounds = least - _MARGIN, FIXED.for_containment - _MARGIN, p.excerpt - _MARGIN

    def may_be_alike(self, one: Sketch, whole: bytes, old: bytes) -> bool:
        """Whether a new page ``one`` may be like the page of the sketch ``old``, or in one form with it.

        ``whole``: see ``features.overlap``. Pages from HTML always may, as lines and headlines are not checked here. So
        may unreadable sketches: the comparison reports them.
        """
        if one.lines or one.article or len(old) < HEAD.size:
            return True
        body, title, _, _, all, shingles, sentences, numbers, words = HEAD.unpack_from(old)
        if body == one.body or title == one.title > 0:
            return True
        end = HEAD.size + len(one.minwise)
        order = end + 4 * sentences + 2 * numbers + 3 * words
        if len(old) <= order or len(old) != order + 1 + 2 * old[order]:
            return True  # only pages from HTML have bytes after the order
        found = overlap(one, old[HEAD.size : end], shingles, all, whole, self._bits)
        least, telling, excerpt = self._bounds
        similarity = found.similarity
        return similarity >= least or (similarity >= telling and found.containment >= excerpt)
