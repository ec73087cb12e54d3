"""What a state holds, and what a page does, as one HTML file: data first, ink after.

data       what a report says, as plain data
clean      strings of pages without what could disturb a reader or a browser
figures    one pass over all records: counts, and what to look at again
times      pages by the time at which they were first seen, in few buckets
candidates the pairs of pages that are worth a look
crawled    the crawls that the state remembers
pairs      two pages side by side, the shared sentences marked
gather     a state to a ``Report``
words      what is said, in each language, from words.en.json and words.zh.json
links      long URLs, to be cut in the middle
charts     the counts as SVG
template   templates filled in, and what a browser may do with the result
page       a ``Report`` to HTML, by report.html, report.css and report.js
safe       the body of a stranger's page as it may be shown: its structure and its text
marked     a page with its parts marked to HTML, by marked.html and marked.css

Only ``charts`` and ``template`` need libraries of their own, of the extra ``report``; they import them when they draw.
"""
