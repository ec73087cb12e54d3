"""A threshold from a few pairs that a reader has labelled: which to ask about, and what the answers say of all pages.

``candidates`` finds of each page the earlier page that it is most like, and what a method says of the two under every
value of its threshold; ``draw`` chooses pairs, most of them where the verdict is least certain; ``answers`` keeps what
was said of them; ``estimates`` tells what each value would have done; ``disagreement`` how far other methods differ.
"""
