"""A state on a Redis server that many crawlers share."""
