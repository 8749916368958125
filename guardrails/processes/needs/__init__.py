"""
The needs of honest programs in a sandbox beside the system and the workspace: languages, git, the network's settings.
"""

from .needed import confinement_for


__all__ = ["confinement_for"]
