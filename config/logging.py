"""Logging to the console, as lines for people or as JSON lines for machines."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object per line; whatever was passed as `extra` becomes a key of its own."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({key: value for key, value in vars(record).items() if key not in _STANDARD and key not in line})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, default=str)


def console_logging(*, level: str, as_json: bool) -> dict[str, Any]:
    """A value for `LOGGING`: everything to standard error, errors also to `ADMINS` when there are any."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {"format": "{asctime} {levelname:<7} {name}: {message}", "style": "{"},
            "json": {"()": "config.logging.JsonFormatter"},
        },
        "filters": {"production": {"()": "django.utils.log.RequireDebugFalse"}},
        "handlers": {
            "console": {"class": "logging.StreamHandler", "formatter": "json" if as_json else "lines"},
            "mail_admins": {
                "class": "django.utils.log.AdminEmailHandler",
                "level": "ERROR",
                "filters": ["production"],
            },
        },
        "root": {"handlers": ["console", "mail_admins"], "level": level},
        # Django's own handlers would say everything twice; its DEBUG is every SQL statement.
        "loggers": {"django": {"handlers": [], "level": "INFO" if level == "DEBUG" else level}},
    }
