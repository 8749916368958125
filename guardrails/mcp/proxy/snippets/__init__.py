"""
The entries in clients' configuration files that start a server guarded.
"""

from .clients import CLIENTS
from .run import main, snippet


__all__ = ["CLIENTS", "main", "snippet"]
