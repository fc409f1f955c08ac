"""The tasks that this process knows, by name."""

from __future__ import annotations

import difflib
import threading

from jobs.domain.errors import TaskNameTaken, TaskNotFound
from jobs.domain.task import TaskDefinition


class Registry:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._definitions: dict[str, TaskDefinition] = {}

    def add(self, definition: TaskDefinition) -> TaskDefinition:
        """The definition itself. The same code again (its module was reloaded) replaces; other code is refused."""
        with self._lock:
            known = self._definitions.get(definition.name)
            if known is not None and known.place != definition.place:
                raise TaskNameTaken(
                    f"two tasks are named {definition.name!r}: {known.place} and {definition.place}; "
                    "give one of them another name=..."
                )
            self._definitions[definition.name] = definition
        return definition

    def remove(self, name: str) -> bool:
        """Whether there was such a task."""
        with self._lock:
            return self._definitions.pop(name, None) is not None

    def find(self, name: str) -> TaskDefinition | None:
        return self._definitions.get(name)

    def get(self, name: str) -> TaskDefinition:
        """Raises `TaskNotFound`, with the names that look alike."""
        definition = self.find(name)
        if definition is None:
            near = difflib.get_close_matches(name, self.names(), n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "tasks are found in each installed app's tasks.py."
            raise TaskNotFound(f"no task is named {name!r}; {hint}")
        return definition

    def names(self) -> tuple[str, ...]:
        """In alphabetical order."""
        with self._lock:
            return tuple(sorted(self._definitions))


registry = Registry()
