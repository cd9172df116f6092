"""What changes sessions. Each function takes the caller's `access` (or the engine's `lease`),
changes rows and appends the facts in one transaction.
"""
