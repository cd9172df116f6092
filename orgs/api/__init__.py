"""How a request says who it is from."""
