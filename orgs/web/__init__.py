"""Signing in and out, and accepting an invitation, in a browser."""
