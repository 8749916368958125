"""
Conversations of guarded agents, kept in a file of SQLite together with the state of their sessions.

    kept = Conversations("agent.db")
    chat = kept.start(wire="chat")
    session = policy.session(chat.id, store=kept.store)
    chat.append({"role": "user", "content": "book a hotel in Shibuya"})
    run(client, session, model="gpt-5-mini", messages=chat, tools=[search_hotels])
"""

from .kept import Conversation, ConversationError, Conversations, Summary


__all__ = ["Conversation", "ConversationError", "Conversations", "Summary"]
