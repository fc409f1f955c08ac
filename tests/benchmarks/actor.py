"""Processes, most with Django set up on one database, that do what they are told and answer."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

import django
import psutil

from tests.benchmarks.ground import cpu_of

ACTS = "tests.benchmarks.acts"
_SPAWN = multiprocessing.get_context("spawn")


class Actor:
    def __init__(self, url: str, module: str = ACTS) -> None:
        self._ours, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(url, module, theirs), daemon=True)
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.answer()  # it is set up

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        return cpu_of(psutil.Process(self.pid))

    def ask(self, act: str, *arguments: Any) -> None:
        self._ours.send((act, arguments))

    def answer(self) -> Any:
        error, value = self._ours.recv()
        if error:
            raise RuntimeError(f"in process {self.pid}:\n{error}")
        return value

    def call(self, act: str, *arguments: Any) -> Any:
        self.ask(act, *arguments)
        return self.answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


@contextmanager
def actors(count: int, url: str, module: str = ACTS) -> Iterator[list[Actor]]:
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(Actor(url, module))
            stack.callback(made[-1].kill)
        yield made


def _serve(url: str, module: str, pipe: Connection) -> None:
    os.environ.update(
        DATABASE_URL=url, DJANGO_SETTINGS_MODULE="tests.settings_process", LOG_LEVEL="WARNING", TEST_JOBS="{}"
    )
    if module == ACTS:
        django.setup()
    acts = importlib.import_module(module)
    pipe.send(("", None))
    while True:
        try:
            act, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(("", getattr(acts, act)(*arguments)))
        except Exception:
            pipe.send((traceback.format_exc(), None))
