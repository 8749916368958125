"""
What stands in a client's configuration file, so that it starts a server guarded.
"""

from .clients import CLIENTS
from .run import main, snippet


__all__ = ["CLIENTS", "main", "snippet"]
