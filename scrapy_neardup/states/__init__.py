"""Looking after a state: what is in it, what of it can go, whether it is whole, and its way to another place.

reading     records with their evidence, one after the other
census      how many pages of which sort
members     which page is whose copy, in columns of numbers
statistics  what is in a state, in numbers
known       what a state knows of one page
near        URLs that a reader takes for the same
forgetting  which pages are to go
crawls      the last crawls, and what came of them
site_drops  pages and drops of each site in the last crawls
expiring    which pages were not seen for too long, or are too many
drops       what crawls dropped as copies
deliveries  which feeds hold the pages of which crawls
kept_rows   those rows of a state that are not of its pages
check/      whether a state is whole, and a mended copy of one that is not
exchange/   export, import and merge
migration   the pages of a state under another recipe

Every function here reads the state in streams: what is held of all pages at once are columns of numbers.
"""
