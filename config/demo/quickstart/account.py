"""The admin user of the sample project."""

from __future__ import annotations

import secrets
import string

from django.contrib.auth import get_user_model

USERNAME = "admin"
_LETTERS = string.ascii_letters + string.digits


def ensure_admin() -> str | None:
    """The new user's password; None when there is a user of that name already, who keeps theirs."""
    users = get_user_model().objects
    if users.filter(username=USERNAME).exists():
        return None
    password = "".join(secrets.choice(_LETTERS) for _ in range(16))
    users.create_superuser(username=USERNAME, email=None, password=password)
    return password
