"""Read pages and make fingerprints in child processes that can be killed.

pool         the processes: started, replaced, killed when they are late
worker       the main function of each process
tasks        what a worker is asked, and its answers
speculation  boilerplate that a worker assumes; the judge verifies it
prefetch     the next records of a file, in workers while earlier ones are judged
"""
