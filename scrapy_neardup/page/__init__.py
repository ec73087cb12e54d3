"""HTML, items and responses to a ``Page``, within bounds of time and memory."""
