"""
Sandboxes for programs that are started for a model: which there are here, and what they keep from a program.
"""

from .choose import Offer, choose, offers
from .confinement import Backend, Confinement, Limits, Program


__all__ = ["Backend", "Confinement", "Limits", "Offer", "Program", "choose", "offers"]
