"""What happened, and every window onto it."""
