"""
Hosts: agent loops and frameworks whose tool calls run behind a session. One module a host, each imported by its user.
"""
