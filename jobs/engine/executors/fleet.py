"""All executors of one process."""

from __future__ import annotations

from jobs.domain.claim import Claim
from jobs.domain.execution import Execution
from jobs.domain.registry import Registry
from jobs.domain.stop import StopReason
from jobs.engine.executors.async_loop import AsyncExecutor
from jobs.engine.executors.port import Executor, Listener
from jobs.engine.executors.process import ProcessExecutor
from jobs.engine.executors.thread import ThreadExecutor
from jobs.engine.options import EngineOptions
from jobs.engine.timekeeper import Timekeeper


class Fleet:
    """One executor for each execution that has slots; none in a process that claims nothing."""

    def __init__(self, options: EngineOptions, listener: Listener, tasks: Registry, timekeeper: Timekeeper) -> None:
        self.by_execution: dict[Execution, Executor] = {}
        grace = options.cancel_grace
        for execution, slots in options.slots.items() if options.claims else ():
            if slots <= 0:
                continue
            match execution:
                case Execution.THREAD:
                    made: Executor = ThreadExecutor(slots, listener, tasks, timekeeper, cancel_grace=grace)
                case Execution.ASYNC:
                    made = AsyncExecutor(slots, listener, tasks, timekeeper, cancel_grace=grace)
                case Execution.PROCESS:
                    made = ProcessExecutor(slots, listener, kill_after=grace)
            self.by_execution[execution] = made

    @property
    def dead(self) -> list[str]:
        return [f"{execution} executor" for execution, one in self.by_execution.items() if not one.alive]

    def start(self) -> None:
        for one in self.by_execution.values():
            one.start()

    def withdraw(self, claim: Claim) -> bool:
        """Whether it had not begun; then it never will."""
        return self.by_execution[claim.execution].withdraw(claim.attempt_id)

    def stop_run(self, attempt_id: int, reason: StopReason) -> bool:
        """Ask one run to stop; False when it is unknown or has ended."""
        return any(one.stop_run(attempt_id, reason) for one in self.by_execution.values())

    def stop(self, deadline: float) -> None:
        """Give up whatever still runs by `deadline` (monotonic seconds)."""
        for one in self.by_execution.values():
            one.stop(deadline)
