"""Functions that give a schedule's job its arguments, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.domain.errors import TaskNameTaken, TaskNotFound

Arguments = tuple[Sequence[Any], Mapping[str, Any]]
Function = Callable[[datetime], Arguments | None]


@dataclass(frozen=True, slots=True, eq=False)
class Factory:
    """Called with the planned instant; gives `(args, kwargs)` of its task, or None for no job this time."""

    name: str
    task: str
    function: Function

    def __call__(self, scheduled_for: datetime) -> Arguments | None:
        return self.function(scheduled_for)


class Factories:
    def __init__(self) -> None:
        self._factories: dict[str, Factory] = {}

    def add(self, factory: Factory) -> Factory:
        """The same code again (its module was reloaded) replaces; other code is refused."""
        known = self._factories.get(factory.name)
        if known is not None and known.function.__code__.co_filename != factory.function.__code__.co_filename:
            raise TaskNameTaken(f"two factories are named {factory.name!r}: give one of them another name=...")
        self._factories[factory.name] = factory
        return factory

    def find(self, name: str) -> Factory | None:
        return self._factories.get(name)

    def get(self, name: str) -> Factory:
        """Raises TaskNotFound, with the names that look alike."""
        factory = self.find(name)
        if factory is None:
            near = difflib.get_close_matches(name, self._factories, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise TaskNotFound(f"no factory is named {name!r}{hint}")
        return factory

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._factories))


factories = Factories()
