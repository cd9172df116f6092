"""Providers and their models over HTTP, for who administers an organization."""
