"""Model providers, by kind. A provider's package is imported only when a turn needs it."""
