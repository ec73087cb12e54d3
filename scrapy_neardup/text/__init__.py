"""From text to what methods compare: small stages, each a pure function in a file of its own.

normalize   one spelling for one text; its letters and digits alone
sentences   where sentences end, in Chinese and in Latin script
shingles    hashed character n-grams
tokens      words (jieba for Chinese) and numbers
lexicon     how telling a word is (IDF)
titles      the article's title without the site's name
"""
