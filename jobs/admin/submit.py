"""The form that submits a job: a registered task, and arguments that fit its signature."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.admin.call_fields import JSONArguments, blamed, with_signature
from jobs.admin.call_text import signature_text, summary
from jobs.conf import jobs_settings
from jobs.domain.errors import InvalidArguments, JobsError, QueueNotDeclared
from jobs.domain.options import MAX_DELAY_SECONDS
from jobs.domain.priority import HIGHEST, LOWEST
from jobs.domain.registry import registry
from jobs.domain.task import TaskDefinition
from jobs.submission import Call, Submitter


class SubmitForm(forms.Form):
    """When it is valid, `call` is bound, checked, and ready to be stored."""

    task = forms.ChoiceField(label=gettext_lazy("Task"))
    args = JSONArguments(list, label=gettext_lazy("Positional arguments"), initial="[]")
    kwargs = JSONArguments(dict, label=gettext_lazy("Named arguments"), initial="{}")
    queue = forms.ChoiceField(label=gettext_lazy("Queue"), required=False)
    delay_seconds = forms.FloatField(
        label=gettext_lazy("Delay (seconds)"), required=False, min_value=0, max_value=MAX_DELAY_SECONDS
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        required=False,
        min_value=LOWEST,
        max_value=HIGHEST,
        help_text=gettext_lazy("-100 to 100, larger runs first. Empty: the task's own."),
    )

    call: Call

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].choices = [("", "---------"), *((name, name) for name in registry.names())]  # type: ignore[attr-defined]
        self.fields["queue"].choices = [  # type: ignore[attr-defined]
            ("", _("the task's own")),
            *((queue, queue) for queue in jobs_settings().QUEUES),
        ]
        self.fields["args"].help_text = _("A JSON list, as in [42, true].")
        self.fields["kwargs"].help_text = _('A JSON object, as in {"seconds": 60}.')
        chosen = registry.find(str((self.data if self.is_bound else self.initial).get("task") or ""))
        if chosen is not None:
            self.fields["task"].help_text = f"{signature_text(chosen)} {summary(chosen)}".strip()

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        definition = registry.find(given.get("task", ""))
        if definition is not None and not self.errors:
            self._bind(definition, given)
        return given

    def _bind(self, definition: TaskDefinition, given: dict[str, Any]) -> None:
        chosen = {"queue": given["queue"] or None, "delay": given["delay_seconds"], "priority": given["priority"]}
        options = {name: value for name, value in chosen.items() if value is not None}
        submitter: Submitter[Any] = Submitter(definition)
        try:
            self.call = submitter.using(**options).bind(*given["args"], **given["kwargs"])
        except InvalidArguments as refused:
            self.add_error(blamed(definition, given, str(refused)), with_signature(definition, str(refused)))
        except QueueNotDeclared as refused:
            self.add_error("queue", str(refused))
        except JobsError as refused:
            self.add_error(None, str(refused))


def offered_tasks() -> list[dict[str, Any]]:
    definitions = filter(None, map(registry.find, registry.names()))
    return [
        {
            "name": definition.name,
            "signature": signature_text(definition),
            "summary": summary(definition),
            "queue": definition.options.queue,
            "execution": definition.options.execution,
        }
        for definition in definitions
    ]
