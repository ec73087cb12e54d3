"""Looking after a state: what is in it, what of it can go, whether it is whole, and its way to another place.

Every function here reads the state in streams: what is held of all pages at once are columns of numbers.
"""
