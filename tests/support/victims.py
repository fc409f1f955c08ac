"""Processes that turn schedules into jobs until they are killed: `python -m tests.support.victims SEED KILLS`.

Each is a fork of this one, which holds no connection, and goes on from where the turned clock was left. Half of them
are killed from outside after some milliseconds, half at one of the instants around their statements and commits.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import sys
import threading
from datetime import timedelta

import django

django.setup()

from django.db import connection  # noqa: E402

from jobs.models import Occurrence  # noqa: E402
from jobs.store.database import database  # noqa: E402
from tests.support.schedules import fire_due  # noqa: E402
from tests.support.store import START  # noqa: E402
from tests.support.striking import Points, striking  # noqa: E402

TURN = 5
LONGEST_LIFE = 0.06
MOST_POINTS = 60
LAST_ROUNDS = 13
"""Undisturbed: on a busy machine the killed ones may not come far, and a minute is to be reached."""


class Clock:
    """Seconds since START, shared by the processes and kept when one of them dies."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)

    @property
    def seconds(self) -> int:
        return int(struct.unpack("q", self._shared[:8])[0])

    def turn(self, seconds: int) -> None:
        self._shared[:8] = struct.pack("q", self.seconds + seconds)


def die() -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives that")


def fire(clock: Clock, points: Points, rounds: int | None = None) -> None:
    """Round after round, each without a history: the schedules' own rows alone say what was made."""
    while rounds is None or rounds > 0:
        Occurrence.objects.all().delete()
        fire_due(striking(database("default", START + timedelta(seconds=clock.seconds)), points))
        clock.turn(TURN)
        rounds = None if rounds is None else rounds - 1


def victim(clock: Clock, strike_at: int) -> int:
    """Its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        fire(clock, Points(strike_at, die))
    except BaseException as error:
        sys.stdout.write(f"a victim failed: {error!r}\n")
    finally:
        os._exit(1)


def main(seed: int, kills: int) -> None:
    rng = random.Random(seed)
    clock = Clock()
    over = threading.Event()
    for number in range(kills):
        within = number % 2 == 0
        pid = victim(clock, rng.randint(1, MOST_POINTS) if within else 0)
        if not within:
            over.wait(rng.uniform(0.005, LONGEST_LIFE))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            return
    fire(clock, Points(), rounds=LAST_ROUNDS)
    connection.close()
    sys.stdout.write(f"killed {kills}; fired until {clock.seconds - TURN}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
