"""Signing in and out, in a browser."""
