"""Settings of child processes that tests start: the project's own, on the database that `DATABASE_URL` names."""

from __future__ import annotations

import json
import os

# Before the project's settings are read: a developer's `.env` must not reach the tests.
os.environ["ENV_FILE"] = ""
os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "0123456789abcdefghijklmnopqrstuvwxyz")

from config.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "tests.support"]
JOBS = {**JOBS, **json.loads(os.environ.get("TEST_JOBS", "{}"))}
