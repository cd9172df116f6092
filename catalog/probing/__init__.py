"""Whether a provider can be used as it is stored: one smallest request, and what came of it."""
