"""Read pages in child processes that can be ended: the ``pool`` starts and replaces them, a ``worker`` reads."""
