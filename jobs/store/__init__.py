"""Verbs: the only code that writes rows. Each takes a `Database`, which carries the alias, the dialect and the clock."""
