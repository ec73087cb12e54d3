"""All that knows Scrapy's engine; ARCHITECTURE.md draws the way of an item through it.

addon              one line in ADDONS switches everything on
middleware         makes a visit for each response, and hands it over with its items
handed             an earlier response that a request hands over
visits, tickets    what the items of a response share; how an item finds that again
coming             whether more items of a response are to come
pipeline           has each item's page judged, and drops or tags the item
opening            the state for a crawl, by its settings
session            what the pipeline works with, from the opening of the spider until every feed is stored
judge, waiting     an item to a verdict; a page waits for a near-duplicate that is on its way
aside, turns       pages read in other processes; judged in the order in which they came
ledger, feeds      what the ends of items come to: kept, taken back; sealed when their feeds are stored
drop_watch         warns of sites that lose suspiciously many pages as copies
held, deliveries   pages that wait for feeds; what was in a feed that this crawl overwrites
dropped            a feed of the items that are dropped, with their verdicts
outage, tagging    a state that fails; an item that takes no tag
torn               a feed that ends in the middle of a line, as after a full disk
telling            what is said of the state at the opening and at the end
notes, stats       what is counted and logged, and the names for it
state              where the state of a crawl lies, and by which recipe
"""
