"""What reads organizations, members, keys and the audit log, with an access."""
