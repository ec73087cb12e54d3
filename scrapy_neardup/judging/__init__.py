"""Where a method meets a store, and nowhere else.

matching      earlier pages that a page may be like, and which of them decides
noting        sentences are counted
former        pages that another method has judged, and that come again
preference    which of two copies is the better one
succession    what part a copy takes in its group: a copy, or the page that stands for it
reservations  pages that passed, and whose items are still on their way
judgements    what somebody has said of a page by hand
drops         which pages a crawl dropped as copies
detector      a page goes in, a ruling comes out, and the page is kept or taken back
recipe        by what pages are fingerprinted, and so can be compared
glance        a store for whoever looks and leaves no trace
records       records of files before a detector
ahead         their pages, read in other processes while those before them are judged
"""
