#!/usr/bin/env python
"""Django's command line for this project."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    if sys.argv[1:2] == ["runscheduler"]:
        # Told to stop while Django still loads: there is nothing to hand back yet. The command takes over from here.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
                signal.signal(number, lambda *_: os._exit(0))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Settings are read before a command's own code runs, and they refuse to load without a key.
    if sys.argv[1:2] == ["quickstart"]:
        from config.dotenv import ensure_secret_key, env_file  # noqa: PLC0415  (after the signals: it takes a while)

        ensure_secret_key(env_file())
    try:
        from django.core.management import execute_from_command_line  # noqa: PLC0415  (the message below needs it)
    except ImportError as error:
        raise SystemExit(
            f"{error}. Install what the project needs: python -m pip install -r requirements.txt"
        ) from error
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415  (as above)

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # Its message says what to do; where it was raised is for those who ask.
        if "--traceback" in sys.argv:
            raise
        raise SystemExit(f"ImproperlyConfigured: {error}") from None


if __name__ == "__main__":
    main()
