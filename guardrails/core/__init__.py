"""
The pure core: it decides, completes and remembers, and reads no clock, file or network.
"""
