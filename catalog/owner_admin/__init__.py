"""Pages of the owner's admin about the catalogue."""
