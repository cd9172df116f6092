"""Child sessions: how they begin, how they report, and how a turn waits for them."""
