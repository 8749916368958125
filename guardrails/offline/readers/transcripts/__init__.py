"""
The transcripts that can be read, one format a file.
"""
