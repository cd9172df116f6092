"""The operators' admin for people and tenants. Keys show their prefix, never a secret."""

from orgs.admin import keys, tenants, users

__all__ = ["keys", "tenants", "users"]
