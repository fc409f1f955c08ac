"""Values and rules: no Django models, no I/O, no clock of their own."""
