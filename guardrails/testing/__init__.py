"""
A scripted server, which tests and demos use in place of a real model.
"""
