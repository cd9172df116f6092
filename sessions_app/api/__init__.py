"""The REST window: parse the shape, call a service or selector, present what it gave."""
