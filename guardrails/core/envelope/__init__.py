"""
The envelope: the text that the model reads.
"""
