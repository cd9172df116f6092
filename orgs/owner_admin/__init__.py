"""The owner's admin: who administers an organization looks after it here, one at a time."""
