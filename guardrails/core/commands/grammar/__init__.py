"""
How a shell command is read: its words, quotes, here-documents and paths.
"""
