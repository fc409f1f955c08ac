"""The project around the app: how it is set up, served and shown; nothing of it is in the wheel."""
