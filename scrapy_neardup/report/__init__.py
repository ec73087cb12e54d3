"""A state, or a page, as one HTML file: ``gather`` collects plain data, ``page`` renders it.

Only ``charts`` and ``html`` need libraries of the extra ``report``, which they import when they draw.
"""
