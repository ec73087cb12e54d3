"""A small Scrapy project that crawls a made-up news site with many near-duplicate pages."""
