"""The sample project: its tasks, its view and receiver, and the quickstart."""
