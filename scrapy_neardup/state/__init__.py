"""The state: pages in a key-value store, across crawls."""
