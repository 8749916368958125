"""
The transcripts of programs that run agents on tasks, one format a file.
"""
