"""
The commands about policy files.
"""

from .commands import policy as policy
