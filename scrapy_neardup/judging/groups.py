"""A page that passes though it is a copy: it stands for its group from now on, or is news of a delivered page."""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.judging.matching import Found
from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Blocked, Ruling
from scrapy_neardup.judging.succession import Standing
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Match, Page, Verdict
from scrapy_neardup.stores import Record, with_first


class Groups:
    """Rules on copies that are more than that to their group: see ``succession``."""

    def __init__(self, registrar: Registrar) -> None:
        self._registrar = registrar

    def ruling(
        self,
        role: Standing,
        page: Page,
        best: Found,
        known: Record | None,
        fingerprint: Fingerprint,
        before: Match | None,
    ) -> Ruling:
        """The ruling on a copy of ``best.original``; ``before``: what was at its URL, if that was delivered.

        Who leads may not change while another page that is to lead is on its way.
        """
        registrar, group = self._registrar, best.original.group
        rivals = registrar.in_flight.of_key(group)
        if role.leads and rivals:
            return Blocked(rivals[0])
        match, likeness = registrar.match(page, best), best.comparison.likeness
        differs = match.similarity < registrar.method.witness_below
        filed = replace(
            fingerprint,
            keys=fingerprint.keys if role.leads or (differs and best.compared.is_original) else (),
            sentences=fingerprint.sentences if differs and known is None else NO_SENTENCES,
        )
        if role.leads:
            filed = replace(filed, keys=(*filed.keys, group))
        id = registrar.store.new_id()
        record = Record(
            id, page.url, group, match.similarity, filed.keys, fingerprint.sketch, delivered=True, body=page.body
        )
        if role is Standing.BETTER:
            verdict = Verdict(role.kind, page.url, id, match, likeness=likeness, group=group)
        else:
            verdict = Verdict(role.kind, page.url, id, before or match, group=group)
        of = with_first(registrar.store, best.original)
        return registrar.reserve(page, verdict, record, filed, known, (likeness, match), of=of)
