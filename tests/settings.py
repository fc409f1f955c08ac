"""Settings of the test run: a SQLite file that threads and processes share, and a throwaway PostgreSQL."""

from __future__ import annotations

import os

# Before the project's settings are read: what a developer has set must not reach the tests.
os.environ["ENV_FILE"] = ""
os.environ["SECRET_KEY"] = "only-for-tests-" + "0123456789abcdefghijklmnopqrstuvwxyz"
for _name in (
    "ALLOWED_HOSTS",
    "DATABASE_URL",
    "DEBUG",
    "HTTPS",
    "LANGUAGE_CODE",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "TIME_ZONE",
):
    os.environ.pop(_name, None)

from config.database import database_from_url, sqlite
from config.settings import *
from tests.support.ground import lay_ground

GROUND = lay_ground()

INSTALLED_APPS = [*INSTALLED_APPS, "tests.support"]
DATABASES = {"default": sqlite(GROUND.directory / "default.sqlite3")}
DATABASES["default"]["TEST"] = {"NAME": str(GROUND.directory / "test.sqlite3")}
DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
if GROUND.postgres_url:
    DATABASES["postgres"] = database_from_url(GROUND.postgres_url, base_dir=GROUND.directory)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if "TEST_JOBS_ALIAS" in os.environ:
    JOBS = {**JOBS, "DATABASE": os.environ["TEST_JOBS_ALIAS"]}
