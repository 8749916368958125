"""
The parts of a policy that may change while its sessions run.
"""
