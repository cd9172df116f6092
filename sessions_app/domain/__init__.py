"""The rules in plain Python: no Django, no database, no clock of its own."""
