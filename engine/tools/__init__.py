"""Tools: one file for each family, and the registry that says who is offered which."""
