"""
The front door of a running agent: it locks, waits, tells the time, runs tools.
"""
