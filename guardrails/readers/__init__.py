"""
Readers of transcripts that people have.
"""
