"""Ends a process whose exit a job's own thread would hold up for ever."""

from __future__ import annotations

import logging
import os
import threading
import time

PATIENCE = 5.0
"""Seconds for exit handlers, and for the threads that the interpreter joins whatever they are: of every executor of
`concurrent.futures`, such as those for the blocking calls of async jobs."""

logger = logging.getLogger(__name__)


def leave_soon(code: object) -> None:
    """Exit with what `sys.exit(code)` would give, at the latest in `PATIENCE` seconds; call it last."""
    if threading.active_count() > 1:
        status = code if isinstance(code, int) else int(code is not None)
        # A daemon: it goes with the interpreter when that ends by itself.
        threading.Thread(target=_leave, args=(status,), name="jobs-exit", daemon=True).start()


def _leave(status: int) -> None:
    time.sleep(PATIENCE)
    others = {threading.main_thread(), threading.current_thread()}
    left = ", ".join(sorted(one.name for one in threading.enumerate() if one not in others))
    logger.warning("exiting although calls of jobs have not returned; their threads: %s", left)
    logging.shutdown()
    os._exit(status)
