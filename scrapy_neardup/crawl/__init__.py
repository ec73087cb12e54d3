"""Everything that knows Scrapy's engine. ARCHITECTURE.md shows the way of an item through it."""
