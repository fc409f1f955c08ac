"""Many threads that do the same at the same instant."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections


def at_once(alias: str, work: Callable[[int], Any], threads: int = 20) -> list[Any]:
    """What `work(number)` gave in each of the threads, which begin together."""
    line = threading.Barrier(threads)
    gave: list[Any] = [None] * threads

    def run(number: int) -> None:
        try:
            connections[alias].ensure_connection()
            line.wait(20)
            gave[number] = work(number)
        except Exception as error:
            gave[number] = error
        finally:
            connections[alias].close()

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    return gave
