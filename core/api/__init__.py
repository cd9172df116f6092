"""The manners of the HTTP API: errors, strict JSON, query parameters, pages, request ids."""
