"""
The demo: a stuck agent with and without guards, and recorded chats played through them.
"""
