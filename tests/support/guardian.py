"""The process that owns a test run's directory and server, and removes both however the run ends.

It is told to stop by a line on its standard input, or by that input's end, which also comes when the test
run was killed.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.postgres import PostgresServer, PostgresUnavailable


def main(*, with_server: bool) -> None:
    """Say in one JSON line what there is, then wait."""
    directory = Path(tempfile.mkdtemp(prefix="jobs-tests-"))
    directory.chmod(0o711)  # the server's own user passes through
    server = PostgresServer(directory / "postgres")
    url, reason = "", ""
    try:
        if with_server:
            try:
                url = server.start()
            except (PostgresUnavailable, OSError, KeyError) as error:
                reason = f"{type(error).__name__}: {error}"
        print(json.dumps({"directory": str(directory), "url": url, "reason": reason}), flush=True)  # noqa: T201
        sys.stdin.readline()
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(with_server="--server" in sys.argv[1:])
