"""
The command `doctor`: what works on this machine and in this installation.
"""

from .command import doctor as doctor
