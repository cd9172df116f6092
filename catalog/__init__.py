"""What a session can be given: agents, providers and models."""
