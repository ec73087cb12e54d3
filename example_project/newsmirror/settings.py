"""Settings of the example project; the only line about near-duplicates is ADDONS."""

BOT_NAME = "newsmirror"
SPIDER_MODULES = ["newsmirror.spiders"]

ADDONS = {"scrapy_neardup.Addon": 500}

# Serves the pages under site/ on this machine for as long as the crawl lasts.
EXTENSIONS = {"newsmirror.site.LocalSite": 0}
NEWSMIRROR_PORT = 8642

# One request at a time, and none before the last page is through, so that the first page of each family is always the
# original and site/pages.json can say which page is which.
CONCURRENT_REQUESTS = 1
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 1

ROBOTSTXT_OBEY = False  # our own local site, which has no robots.txt
TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "INFO"

FEEDS = {"articles.jsonl": {"format": "jsonlines", "overwrite": False}}
