"""How fast the process executor is: `python -m tests.benchmarks.process_executor [jobs] [slots]`."""

from __future__ import annotations

import os
import sys
import threading
import time

import django

from jobs.domain.claim import Claim
from jobs.domain.outcome import Outcome
from jobs.engine.executors.process import ProcessExecutor
from tests.support.ear import Ear, claim
from tests.support.waiting import wait_until

IDLE_SECONDS = 5


class Counter(Ear):
    """Counts ends, and remembers nothing."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.left = jobs
        self.done = threading.Event()
        self._counting = threading.Lock()

    def started(self, claim: Claim) -> None:
        pass

    def finished(self, claim: Claim, outcome: Outcome, *, lingers: bool = False) -> None:
        with self._counting:
            self.left -= 1
            if not self.left:
                self.done.set()


def main(jobs: int = 5000, slots: int = 2) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings_process")
    django.setup()
    counter = Counter(jobs + slots)
    executor = ProcessExecutor(slots, counter, runner="tests.support.bodies.run_here")
    began = time.monotonic()
    executor.start()
    executor.submit(claim("pid"))
    wait_until(lambda: counter.left == jobs + slots - 1)
    _say(f"first job done after {time.monotonic() - began:.3f} s")
    for _ in range(slots - 1):
        executor.submit(claim("nap", 1))
    wait_until(lambda: counter.left == jobs)  # every slot has its child
    claims = [claim("pid") for _ in range(jobs)]
    began = time.monotonic()
    for one in claims:
        executor.submit(one)
    counter.done.wait(600)
    _say(f"{jobs} empty jobs, {slots} slots: {jobs / (time.monotonic() - began):,.0f} jobs/s")
    before = time.process_time()
    time.sleep(IDLE_SECONDS)
    _say(f"idle: {(time.process_time() - before) / IDLE_SECONDS:.2%} of a CPU in this process")
    began = time.monotonic()
    executor.stop(time.monotonic())
    _say(f"stopped in {time.monotonic() - began:.3f} s")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
