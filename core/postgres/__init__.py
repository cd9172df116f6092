"""Django's PostgreSQL, for which a server that takes no writes is a server that is away."""
