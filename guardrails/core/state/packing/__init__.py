"""
A session's state as bytes, of this version of the library and of those before.
"""

from .calls import Memo
from .packed import VERSION, pack, unpack


__all__ = ["VERSION", "Memo", "pack", "unpack"]
