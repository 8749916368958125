"""
What a test or a demo needs in place of a real model: a scripted server.
"""
