"""Tables of the sample project."""
