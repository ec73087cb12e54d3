"""An earlier response that a request hands over: the page of an article that the request only completes.

``meta={"neardup_response": response}``. The response waits with its request, perhaps in a queue on disk. So what waits
is a copy without what a spider has made of it: its parsed tree takes several times the room of the page, its request
leads to further ones, and neither can be pickled.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.http import Response

from scrapy_neardup.oneline import line_logger, one_line

logger = line_logger(__name__)

#: The key in the request's meta.
HANDED = "neardup_response"


class HandedOver:
    """Finds the responses that requests hand over; the log tells once of what is none."""

    def __init__(self) -> None:
        self._told = False

    def response(self, request: Request | None) -> Response | None:
        """The response that a request hands over, if it does."""
        handed = None if request is None else request.meta.get(HANDED)
        if handed is None or isinstance(handed, Response):
            return handed
        if not self._told:
            self._told = True
            several = isinstance(handed, (list, tuple)) and any(isinstance(one, Response) for one in handed)
            logger.warning(
                "meta[%r] of the request for %s is a %s, not a response, so its items are judged by their own "
                "response. %s (Logged once.)",
                HANDED,
                one_line(str(request.url)) if request is not None else "",
                type(handed).__name__,
                "It takes one response. If an article has several parts, give the item its text in a field, and name "
                "that field for 'text' in NEARDUP_FIELDS."
                if several
                else "Set the response itself: meta={'neardup_response': response}.",
            )
        return None

    def lighten(self, request: Request) -> None:
        """Have a request that is about to wait hold no more of the response than is judged."""
        handed = request.meta.get(HANDED)
        if isinstance(handed, Response):
            request.meta[HANDED] = handed.replace(request=_lead(handed), certificate=None)


def led_here(response: Response) -> frozenset[str]:
    """URLs that led to a response: that of its request, and those that were redirected."""
    if response.request is None:
        return frozenset()
    return frozenset((response.request.url, *response.meta.get("redirect_urls", ())))  # meta is that of the request


def _lead(response: Response) -> Request | None:
    """Of the request of a response what is asked for later."""
    if response.request is None:
        return None
    return Request(response.request.url, meta={"redirect_urls": response.meta.get("redirect_urls", ())})
