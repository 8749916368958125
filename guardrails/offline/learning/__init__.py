"""
From records to a model: which failures are worth another try.
"""
