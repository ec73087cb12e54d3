"""Where a method meets a store, and nowhere else.

matching      earlier pages that a page may be like, and which of them decides
noting        sentences are counted
former        pages that another method has judged, and that come again
returning     copies that were dropped, and come again with the same text
preference    which of two copies is the better one
succession    what part a copy takes in its group: a copy, or the page that stands for it
reservations  pages that passed, and whose items are still on their way
judgements    what somebody has said of a page by hand
drops         which pages a crawl dropped as copies
registrar     what every ruling ends in: a page that passes is reserved, one that is dropped is noted
by_mark       pages that are compared with no other page
same_url      what was at the URL of a page decides first
by_hand       copies by hand
copies        a page that is a copy and nothing more
groups        a page that passes though it is a copy
by_bytes      pages whose very bytes were judged before, and need not be read
ageing        a crawl forgets what a state is no longer to know
detector      a page goes in, a ruling comes out, and the page is kept or taken back
transactions  synchronous work on a state on a server, for a loop that never waits
awaited       pages of other crawlers on a server for which pages of this one wait
filing        a page on its way to its verdict, where all crawlers of a server see it
shared        a crawl on a state that it shares with others
now           pages that count as soon as they are judged, one after the other
shared_now    the same on a state that is shared with others
recipe        by what pages are fingerprinted, and so can be compared
glance        a store for whoever looks and leaves no trace
records       records of files before a detector
ahead         their pages, read in other processes while those before them are judged
presumed      what is boilerplate, as it is presumed where the state is not at hand
lessons       what other processes are told of that
prepared      fingerprints that were made by it
preparer      pages that bring their text are fingerprinted so, in other processes
preparing     such a process
reader        pages are read in other processes, and fingerprinted so
reading       such a process
"""
