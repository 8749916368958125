"""
The parts that readers share for text and fields.
"""
