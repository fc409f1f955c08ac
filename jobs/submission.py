"""Submit calls of tasks: bound and checked first, then inserted in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings as django_settings
from django.utils import timezone

from jobs.conf import jobs_settings, require_declared
from jobs.domain.errors import InvalidArguments, TaskNotFound
from jobs.domain.options import MAX_META_BYTES, SubmitOptions, TaskOptions, UniqueScope, submission
from jobs.domain.registry import registry
from jobs.domain.status import Status
from jobs.domain.strict_json import dumps
from jobs.domain.task import TaskDefinition
from jobs.domain.text import shown
from jobs.engine.hints import hint_due
from jobs.store.database import Database, database
from jobs.store.submit import Receipt, Submission, submit

if TYPE_CHECKING:
    from jobs.models import Job

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a task, bound to its signature and checked, ready for `enqueue_many`."""

    definition: TaskDefinition
    submission: Submission


class Submitter(Generic[P]):
    """A task with the options of one submission: what `using(...)` returns."""

    def __init__(
        self, definition: TaskDefinition, options: TaskOptions | None = None, submitted: SubmitOptions | None = None
    ) -> None:
        self.definition = definition
        self._options = options or definition.options
        self._submitted = submitted or SubmitOptions()

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def has_options(self) -> bool:
        """Whether `using(...)` said anything."""
        return self._options is not self.definition.options or self._submitted != SubmitOptions()

    def using(self, **options: Any) -> Submitter[P]:
        """The same task with other options: those of `@job`, plus `run_at` or `delay`, `deadline`, `expires_at`,
        `unique_key`, `unique_scope`, `tags` and `meta`. Raises InvalidOption."""
        changed, submitted = submission(self._options, self._submitted, use_tz=django_settings.USE_TZ, **options)
        return Submitter(self.definition, changed, submitted)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Check the call and keep it. Raises InvalidArguments, QueueNotDeclared, TaskNotFound; runs no SQL."""
        if registry.find(self.definition.name) is not self.definition:
            raise TaskNotFound(f"task {self.definition.name!r} is not registered (any more): it cannot be submitted")
        return self.bound(self.definition.parameters.encode(args, kwargs, max_bytes=jobs_settings().MAX_ARGUMENT_BYTES))

    def bound(self, arguments: str) -> Call:
        """The call with arguments that are JSON text already, as a job stores them."""
        require_declared(self._options.queue)
        return Call(self.definition, _submission(self.definition, self._options, self._submitted, arguments))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """The stored job, inserted in the caller's transaction. `created` is False when its unique key was held:
        then it is the holder. Raises what `bind` raises, before any SQL."""
        return _store([self.bind(*args, **kwargs)])[0]

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """`enqueue` for async code. Django's transactions are synchronous: inside one use `enqueue`."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)


def enqueue_many(calls: Iterable[Call], *, actor: str = "") -> list[Job]:
    """The stored jobs of bound calls of any tasks, in order; one statement per batch of 1,000.

    Raises InvalidArguments, before any SQL, when one of them is no bound call.
    """
    listed = list(calls)
    for place, call in enumerate(listed):
        if not isinstance(call, Call):
            raise InvalidArguments(
                f"enqueue_many: number {place} is {shown(call)}, not a bound call of a task: "
                "pass task.bind(...), not task(...), which runs it here and now"
            )
    return _store(listed, actor=actor)


async def aenqueue_many(calls: Iterable[Call], *, actor: str = "") -> list[Job]:
    return await sync_to_async(enqueue_many)(list(calls), actor=actor)


def _submission(
    definition: TaskDefinition, options: TaskOptions, submitted: SubmitOptions, arguments: str
) -> Submission:
    return Submission(
        task=definition.name,
        queue=options.queue,
        execution=options.execution,
        priority=options.priority,
        arguments=arguments,
        tags=dumps(dict(submitted.tags), root="tags", max_bytes=MAX_META_BYTES),
        meta=dumps(dict(submitted.meta), root="meta", max_bytes=MAX_META_BYTES),
        run_at=_aware(submitted.run_at),
        delay_seconds=submitted.delay_seconds or 0.0,
        deadline=_aware(submitted.deadline),
        expires_at=_aware(submitted.expires_at),
        timeout_seconds=options.timeout_seconds,
        max_retries=options.retry.max_retries,
        max_lost=options.max_lost,
        at_most_once=options.at_most_once,
        store_result=options.store_result,
        unique_key=submitted.unique_key,
        unique_until_started=submitted.unique_scope is UniqueScope.UNTIL_STARTED,
        retry_base_seconds=options.retry.base_seconds,
        retry_max_seconds=options.retry.max_seconds,
        retry_jitter=options.retry.jitter,
    )


def _aware(instant: datetime | None) -> datetime | None:
    """Without USE_TZ a naive instant is local time, as everywhere in Django."""
    return timezone.make_aware(instant) if instant is not None and timezone.is_naive(instant) else instant


def _store(calls: Sequence[Call], *, actor: str = "") -> list[Job]:
    if not calls:
        return []
    db = database(jobs_settings().DATABASE)
    submissions = [call.submission for call in calls]
    receipts = submit(db, submissions, actor=actor)
    if any(receipt.created and _soon(receipt) for receipt in receipts):
        hint_due(db)
    held = {receipt.job_id for receipt in receipts if not receipt.created}
    holders = _job_model().objects.using(db.alias).in_bulk(held) if held else {}
    return [
        _stored(db, one, receipt) if receipt.created else holders[receipt.job_id]
        for one, receipt in zip(submissions, receipts, strict=True)
    ]


def _soon(receipt: Receipt) -> bool:
    """Due before sleepers look anyway."""
    return (receipt.run_at - receipt.submitted_at).total_seconds() <= jobs_settings().POLL


def _job_model() -> type[Job]:
    # Not imported: tasks are declared while Django still loads models.
    model: type[Job] = apps.get_model("jobs", "Job")
    return model


def _stored(db: Database, submitted: Submission, receipt: Receipt) -> Job:
    """The row that was just written, without reading it back."""
    row = _job_model()(
        id=receipt.job_id,
        task=submitted.task,
        queue=submitted.queue,
        execution=submitted.execution.value,
        priority=submitted.priority,
        rank=submitted.rank,
        status=Status(receipt.status).value,
        run_at=receipt.run_at,
        submitted_at=receipt.submitted_at,
        status_changed_at=receipt.submitted_at,
        started_at=None,
        ended_at=None,
        deadline=submitted.deadline,
        expires_at=submitted.expires_at,
        timeout_seconds=submitted.timeout_seconds,
        max_retries=submitted.max_retries,
        max_lost=submitted.max_lost,
        at_most_once=submitted.at_most_once,
        store_result=submitted.store_result,
        unique_key=submitted.unique_key,
        unique_slot=submitted.unique_key,
        unique_until_started=submitted.unique_until_started,
        cancel_requested_at=None,
        unknown_since=None,
        schedule_id=submitted.schedule_id,
        scheduled_for=submitted.scheduled_for,
    )
    row._state.adding = False
    row._state.db = db.alias
    row.created = True
    return row
