"""Where a method meets a store, and nowhere else.

matching      earlier pages that a page may be like, and which of them decides
reservations  pages that passed, and whose items are still on their way
judgements    what somebody has said of a page by hand
drops         which pages a crawl dropped as copies
detector      a page goes in, a ruling comes out, and the page is kept or taken back
records       records of files before a detector
"""
