"""Pure functions from a text to the things that methods compare.

normalize: one spelling for one text.
sentences: where sentences end, and a text cut into them.
quotes: the lines of a message that quote another one, and signatures.
tokens, lexicon: words, numbers, stop words, inverse document frequency (IDF).
shingles: hashed n-grams.
titles: the article's title without the site's name.
marking: the sentences that two texts share.
"""
