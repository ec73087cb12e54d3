"""All that knows Scrapy's engine: from an item and its response to a page that counts, or is taken back."""
