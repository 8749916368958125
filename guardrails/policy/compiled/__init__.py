"""
A policy compiled to one JSON file, so that a short-lived process reads it without YAML and without checks.
"""

from .loading import load_compiled as load_compiled
from .loading import sources_of as sources_of
