"""Verbs: the only code that writes rows. Each takes a `Database`: alias, dialect and clock."""
