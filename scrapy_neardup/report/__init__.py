"""What a state holds, as one HTML file: data first, ink after.

data       what a report says, as plain data
clean      strings of pages without what could disturb a reader or a browser
figures    one pass over all records: counts, and what to look at again
times      pages by the time at which they were first seen, in few buckets
candidates the pairs of pages that are worth a look
pairs      two pages side by side, the shared sentences marked
gather     a state to a ``Report``
charts     the counts as SVG
page       a ``Report`` to HTML, by report.html, report.css and report.js

Only ``charts`` and ``page`` need libraries of their own, of the extra ``report``; they import them when they draw.
"""
