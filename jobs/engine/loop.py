"""The loop every agent runs: until stopped do, survive, wait."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import InterfaceError, connections, reset_queries

logger = logging.getLogger(__name__)

LONGEST_BACKOFF = 10.0
LOG_EVERY = 30.0


class Loop:
    """A thread that calls `work` again and again. It returns how many seconds it may sleep; `wake()` ends the sleep.

    A database error costs a reconnect after a capped, jittered backoff; any other exception too, and is logged
    with its traceback. Once stopped the thread calls `at_end`, if it can, and closes its connections.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], float],
        *,
        prepare: Callable[[], None] | None = None,
        at_end: Callable[[], None] | None = None,
        longest_backoff: float = LONGEST_BACKOFF,
    ) -> None:
        self.name = name
        self._longest_backoff = longest_backoff
        self._work = work
        self._prepare = prepare
        self._at_end = at_end
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._rng = random.Random()
        self._logged_at = float("-inf")
        self.was_woken = True
        """Whether the last sleep was ended by `wake()`; True in the first round."""
        self.errors = 0
        """Rounds that failed since the last one that went well."""

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name=f"jobs-{self.name}", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        if not self._woken.is_set():  # the answer is cheap, and mostly yes when there is much to do
            self._woken.set()

    def ask_to_stop(self) -> None:
        self._stopping.set()
        self._woken.set()

    def stop(self, deadline: float) -> bool:
        """Whether the thread ended by `deadline` (monotonic seconds). Safe twice, and unstarted."""
        self.ask_to_stop()
        thread = self._thread
        if thread is None:
            return True
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            return False
        self._thread = None
        return True

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._woken.clear()
                sleep = self._survive()
                reset_queries()  # under DEBUG, Django keeps the statements of a whole request, and this one never ends
                if sleep > 0 and not self._stopping.is_set():
                    self.was_woken = self._woken.wait(sleep)
            self._say_goodbye()
        finally:
            connections.close_all()

    def _say_goodbye(self) -> None:
        if self._at_end is None:
            return
        try:
            self._at_end()
        except Exception as error:  # noqa: BLE001 - nothing depends on it
            logger.info("%s: its last words were not heard: %s", self.name, _first_line(error))

    def _survive(self) -> float:
        try:
            if self._prepare is not None:
                self._prepare()
            sleep = self._work()
            if self.errors:
                logger.info("%s: works again after %s failed rounds", self.name, self.errors)
            self.errors = 0
            return sleep
        except (DatabaseError, InterfaceError) as error:
            self._log("%s: the database failed: %s; trying again", self.name, _first_line(error))
        except BaseException:  # noqa: BLE001 - logged, counted, and the loop goes on; SystemExit is a listener's idea
            self._log("%s: a round failed; trying again", self.name, with_traceback=True)
        self.errors += 1
        self._drop_connections()
        backoff = self._backoff()
        self._stopping.wait(backoff)
        return 0.0

    def _backoff(self) -> float:
        return self._rng.uniform(0.5, 1.0) * min(self._longest_backoff, 0.05 * 2.0 ** min(self.errors, 20))

    def _log(self, message: str, *args: object, with_traceback: bool = False) -> None:
        # The first failure at once, then one line every half minute, however many rounds fail.
        if self.errors == 0 or time.monotonic() - self._logged_at > LOG_EVERY:
            self._logged_at = time.monotonic()
            logger.warning(message, *args, exc_info=with_traceback)

    def _drop_connections(self) -> None:
        for connection in connections.all(initialized_only=True):
            try:
                connection.close()
            except Exception:
                logger.debug("closing %s failed", connection.alias, exc_info=True)
                del connections[connection.alias]


def _first_line(error: Exception) -> str:
    """libpq says the rest in three lines more."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
