"""
From records to counted rows.
"""
