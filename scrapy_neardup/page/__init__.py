"""From what a server gave to a ``Page``.

charset     bytes to text, also where the page declares a wrong charset or none
extraction  HTML to a page: its head, its main text
trees       HTML to a tree
blocks      the visible lines of one
reading     which of them are judged
lines       what becomes of each, for people
sites       whose page a URL is
marks       all that an item holds as one number
rows        an item of a listing to a page
served      a response, whichever crawler or archive it came from
limits      how much of a page is judged
risk        whether a page may take long to read
raw         what a page is read from, as it may be sent to another process
bodies      by what that is known again, before it is read
item_head   what an item says of its page beside its text
item        what an item holds in which of its fields
cures       what to do about an item of which the response is not the page
source      the fields of an item or a record, with its response, to a page
"""
