"""The sample project: tasks that do real work, and the quickstart that shows them."""
