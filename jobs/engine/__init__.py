"""Agents that start and stop. They see claims and outcomes, never model instances."""
