"""The verdicts of a crawl for scripts and notebooks."""
