"""Declare tasks as classes: the base class sets the execution."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from jobs.domain.context import Context
from jobs.domain.declaration import Declaration
from jobs.domain.execution import Execution
from jobs.domain.options import task_options
from jobs.domain.registry import registry
from jobs.domain.task import define
from jobs.submission import Call, Submitter

if TYPE_CHECKING:
    from jobs.models import Job

P = ParamSpec("P")
T = TypeVar("T")


class _Nobody:
    """A first parameter that takes this too is declared as Any, or not at all: it says nothing about a context."""


class _RunsLoose(Protocol):
    def run(self, first: _Nobody, /, *args: Any, **kwargs: Any) -> Any: ...


class _RunsWithContext(Protocol[P]):
    def run(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class _Runs(Protocol[P]):
    def run(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class _RunsSyncLoose(Protocol):
    def run_sync(self, first: _Nobody, /, *args: Any, **kwargs: Any) -> Any: ...


class _RunsSyncWithContext(Protocol[P]):
    def run_sync(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class _RunsSync(Protocol[P]):
    def run_sync(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class _Door(Generic[T]):
    """A method of the class's submitter, typed by the parameters of its `run` or `run_sync`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: object, owner: type[_RunsLoose] | type[_RunsSyncLoose]) -> Callable[..., T]: ...
    @overload
    def __get__(self, instance: object, owner: type[_RunsWithContext[P]]) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: object, owner: type[_RunsSyncWithContext[P]]) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: object, owner: type[_Runs[P]]) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: object, owner: type[_RunsSync[P]]) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> Callable[..., T]: ...
    def __get__(self, instance: object, owner: type[Any]) -> Any:
        return getattr(owner._submitter, self._name)


class _Using:
    """`using(...)` of the class's submitter, typed alike."""

    @overload
    def __get__(
        self, instance: object, owner: type[_RunsLoose] | type[_RunsSyncLoose]
    ) -> Callable[..., Submitter[Any]]: ...
    @overload
    def __get__(self, instance: object, owner: type[_RunsWithContext[P]]) -> Callable[..., Submitter[P]]: ...
    @overload
    def __get__(self, instance: object, owner: type[_RunsSyncWithContext[P]]) -> Callable[..., Submitter[P]]: ...
    @overload
    def __get__(self, instance: object, owner: type[_Runs[P]]) -> Callable[..., Submitter[P]]: ...
    @overload
    def __get__(self, instance: object, owner: type[_RunsSync[P]]) -> Callable[..., Submitter[P]]: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> Callable[..., Submitter[Any]]: ...
    def __get__(self, instance: object, owner: type[Any]) -> Any:
        return owner._submitter.using


class _JobClass:
    """Registers every subclass that has a body: `class Digest(CpuBoundJob, queue="reports", timeout=60)`."""

    execution: Execution
    _submitter: Submitter[Any]

    using = _Using()
    bind = _Door[Call]()
    enqueue = _Door["Job"]()
    aenqueue = _Door[Coroutine[Any, Any, "Job"]]()

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        abstract: bool = False,
        schedule: Declaration | Sequence[Declaration] | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__()
        if not abstract:
            definition = define(cls, name=name, options=task_options(**options), schedule=schedule)
            cls._submitter = Submitter(registry.add(definition))


class AsyncJob(_JobClass, abstract=True):
    """Write `async def run(self, ...)`: it runs on the event loop."""

    execution = Execution.ASYNC


class BlockingJob(_JobClass, abstract=True):
    """Write `def run_sync(self, ...)`: it runs in a thread."""

    execution = Execution.THREAD


class CpuBoundJob(_JobClass, abstract=True):
    """Write `def run_sync(self, ...)`: it runs in a child process that can be killed."""

    execution = Execution.PROCESS
