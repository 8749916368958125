"""
Guards that count: budgets, rates, growth, streaks, refused turns.
"""
