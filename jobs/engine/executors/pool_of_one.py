"""One killable child process, in a pebble pool that it shares with nobody."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext

from pebble import ProcessFuture, ProcessPool

from jobs.domain.claim import Claim
from jobs.engine.executors import child
from jobs.engine.executors.board import READY, UNUSABLE, new_board
from jobs.engine.executors.child import ChildSettings

BURIAL_SECONDS = 5.0

logger = logging.getLogger(__name__)


class PoolOfOne:
    """A pool that is thrown away with its child.

    Children of one pebble pool share a pipe and its locks. Measured with pebble 5.2: a child that is killed while it
    is idle, or holds a lock, ends the pool for all the others, and one that calls `os._exit(0)` is never reported.
    """

    def __init__(self, context: BaseContext, settings: ChildSettings, channel: Connection) -> None:
        """Starts the child, and does not wait until it is ready. Raises OSError or RuntimeError if it cannot."""
        self.board = new_board(context)
        self._pool = ProcessPool(
            max_workers=1, initializer=child.prepare, initargs=(settings, self.board, channel), context=context
        )
        with _without_interrupts():
            active = self._pool.active  # asking starts it
        if not active:
            raise RuntimeError("pebble could not start a child process")

    @property
    def usable(self) -> bool:
        """False once the child died while it was idle, or could not be set up."""
        return self.board.state != UNUSABLE and self._pool.active

    @property
    def ready(self) -> bool:
        return self.board.state == READY and is_alive(self.board.pid)

    def run(self, claim: Claim) -> ProcessFuture[str]:
        """Raises RuntimeError when the pool is no longer usable."""
        return self._pool.schedule(child.run, args=(claim,))

    def has_begun(self, attempt_id: int) -> bool:
        return self.board.began == attempt_id

    def kill(self) -> None:
        """Kill the child and whatever it started, also when it is dead itself. Returns when the child is gone."""
        self._pool.stop()  # type: ignore[no-untyped-call]  # first, so that pebble starts no other child
        for leader in {self.board.pid, self.board.began_pid} - {0}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
        burial = threading.Thread(target=self._bury, name="jobs-child-burial", daemon=True)
        try:
            burial.start()
        except RuntimeError:  # the interpreter is shutting down
            self._bury()
        else:
            burial.join(BURIAL_SECONDS)

    def _bury(self) -> None:
        # A grandchild in a session of its own may hold pebble's pipe open; then this thread stays behind, nothing else.
        try:
            self._pool.join()
        except Exception:  # whatever pebble meets in the ruins
            logger.warning("a pool of one child was not taken down cleanly", exc_info=True)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started here keeps Ctrl-C waiting until it has said that it ignores it."""
    # It unblocks the signal once it has started its process: let it do so first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_alive(pid: int) -> bool:
    """Whether this process of ours runs. pebble and the fork server reap the dead, so there are no zombies for long."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
