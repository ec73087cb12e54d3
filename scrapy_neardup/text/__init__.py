"""From text to what methods compare: small stages, each a pure function in a file of its own.

script      traditional Chinese characters as simplified ones
marks       combining marks in a row, of which no text has many
characters  what the compiled stages must know of a character
normalize   one spelling for one text; its letters and digits alone
sentences   where sentences end, in Chinese and in Latin script
cut         a text that is cut into sentences, for all that is asked of it
holding     whether a text holds one of many strings
quote_signs by what a line is told to be a quote
quotes      which lines of a message are quotes
marking     which of them another text holds too, or many pages
shingles    hashed n-grams, and the different ones among them
tokens      words (jieba for Chinese) and numbers
stopwords   words that say nothing
lexicon     how telling a word is (IDF)
titles      the article's title without the site's name
prose       whether there is enough of a text to judge it
"""
