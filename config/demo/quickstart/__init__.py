"""What `manage.py quickstart` is made of."""
