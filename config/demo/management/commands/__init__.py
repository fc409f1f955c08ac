"""Commands of the sample project, one per file."""
