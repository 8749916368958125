"""
The two ends of a tap: a client or a server, over standard input and output or over HTTP.
"""
