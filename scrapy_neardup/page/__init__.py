"""From the bytes of a response to a ``Page``: its charset, its head, its main text, and whose page it is."""
