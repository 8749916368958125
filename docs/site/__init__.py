"""
The site of the documentation: what is generated, how it is laid out, and what it is held to.
"""
