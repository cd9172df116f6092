"""Who: users, organizations, workspaces, members, keys. Roles become an `Access` here alone."""
