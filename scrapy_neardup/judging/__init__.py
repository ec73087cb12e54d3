"""Where a method meets a store, and nowhere else.

matching      earlier pages that a page may be like, and which of them decides
detector      a page goes in, a verdict comes out
reservations  pages that passed, and whose items are still on their way
"""
