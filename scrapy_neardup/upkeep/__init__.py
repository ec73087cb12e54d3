"""Looking after a state: what is in it, what of it can go, whether it is whole, and a mended copy of one that is not.

Every function here reads the state in streams: what is held of all pages at once are columns of numbers.
"""
