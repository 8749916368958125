"""
The things that a process takes from itself before it becomes the program: rights, calls, handles, more than its share.

Standard library only: it runs in the launcher, which imports nothing else.
"""
