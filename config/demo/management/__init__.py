"""Commands of the sample project."""
