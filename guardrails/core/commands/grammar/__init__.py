"""
The reading of a shell command: its words, quotes, here-documents and paths.
"""
