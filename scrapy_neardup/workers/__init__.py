"""Read pages in child processes that can be killed.

pool      the processes: started, replaced, killed when they are late
worker    the main function of each process
messages  what a worker is asked, and its answers
prefetch  the next records of a file, in workers while earlier ones are judged
"""
