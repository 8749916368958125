"""
The version of the library. It is said here and nowhere else; the build reads it from this file.
"""

__version__ = "0.3.0"
