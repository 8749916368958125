"""
Which failures are worth another try: features, a model's scores and what follows from them. Pure.
"""
