"""A process that runs one body of `bodies` in a process executor, until it is killed."""

from __future__ import annotations

import signal
import sys
import threading

import django

from jobs.engine.executors.process import ProcessExecutor
from tests.support.ear import Ear, claim


def main(task: str, folder: str) -> None:
    django.setup()
    executor = ProcessExecutor(1, Ear(), runner="tests.support.bodies.run_here")
    # From a thread that ends: the fork server's parent is then another thread, and that is no reason to end.
    starter = threading.Thread(target=executor.start)
    starter.start()
    starter.join()
    executor.submit(claim(task, folder))
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
