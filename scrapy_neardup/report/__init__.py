"""A state, or a page, as one HTML file: ``gather`` collects plain data, ``page`` renders it.

Only ``page`` needs a library of the extra ``report``, which it imports when it renders.
"""
