"""
A process that stays and answers the hooks of one user, so that a hook's own process imports next to nothing.

The modules of the asking side (`ask`, `folder`, `start`, `wire`) import os, sys and built-in modules only.
"""
