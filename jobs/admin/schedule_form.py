"""The form of a schedule: whatever is wrong is said at its field, and an unchanged field stays as it is stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs.admin.call_fields import JSONArguments, blamed, with_signature
from jobs.admin.call_text import signature_text, summary
from jobs.conf import jobs_settings, require_declared
from jobs.domain.errors import InvalidArguments, InvalidOption, QueueNotDeclared
from jobs.domain.factories import factories
from jobs.domain.registry import registry
from jobs.domain.task import TaskDefinition
from jobs.models import Schedule
from jobs.recurring import storable_options

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Schedule]
else:
    _ModelForm = forms.ModelForm

INSTANTS = ("anchor_at", "start_at", "end_at")
JSON_FIELDS = ("args", "kwargs", "options")


class ScheduleForm(_ModelForm):
    task = forms.ChoiceField(label=gettext_lazy("Task"))
    factory = forms.ChoiceField(label=gettext_lazy("Factory"), required=False)
    args = JSONArguments(list, label=gettext_lazy("Positional arguments"))
    kwargs = JSONArguments(dict, label=gettext_lazy("Named arguments"))
    options = JSONArguments(dict, label=gettext_lazy("Job options"))

    class Meta:
        model = Schedule
        fields = (
            "name",
            "task",
            "factory",
            "options",
            "expression",
            "timezone",
            "interval_seconds",
            "anchor_at",
            "start_at",
            "end_at",
            "jitter_seconds",
            "overlap",
            "catch_up",
            "catch_up_cap",
        )
        help_texts = {
            "name": gettext_lazy("By which code and commands find it."),
            "expression": gettext_lazy('Five fields, as in "0 7 * * mon-fri", or @daily and the like.'),
            "timezone": gettext_lazy("Whose clocks the expression follows, as in Europe/Berlin."),
            "interval_seconds": gettext_lazy("Instead of an expression: a fixed rate, whatever clocks do."),
            "anchor_at": gettext_lazy("For a fixed rate. Empty: its start, or now."),
            "start_at": gettext_lazy("Nothing fires before it."),
            "end_at": gettext_lazy("Nothing fires at it or later."),
            "jitter_seconds": gettext_lazy("Each job is due up to this much later, so that many do not start at once."),
            "overlap": gettext_lazy("While an earlier job of this schedule has not ended."),
            "catch_up": gettext_lazy("After a time when no scheduler ran."),
            "catch_up_cap": gettext_lazy("Of a job each: no more than the newest so many."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        row = kwargs.get("instance")
        kwargs["initial"] = {**_initial(row), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        self._offer("task", registry.names(), self.instance.task)
        self._offer("factory", factories.names(), self.instance.factory)
        self._explain(
            "factory", _("A registered function that gives the arguments of each instant. Empty: the ones here.")
        )
        self._explain("args", _("A JSON list, as in [42, true]."))
        self._explain("kwargs", _('A JSON object, as in {"seconds": 60}.'))
        self._explain("options", _('As of task.using(...), in JSON: {"queue": "mail", "priority": 50, "timeout": 60}.'))
        chosen = registry.find(str((self.data.get("task") if self.is_bound else self.instance.task) or ""))
        if chosen is not None:
            self._explain("task", f"{signature_text(chosen)} {summary(chosen)}".strip())

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        # Not by the model's own check, which asks the default database.
        others = Schedule.objects.using(jobs_settings().DATABASE).exclude(pk=self.instance.pk)
        if others.filter(name=name).exists():
            raise ValidationError(_("There is a schedule of that name already."))
        return name

    def validate_unique(self) -> None:
        """`clean_name` did."""

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        self._keep_unchanged(given)
        if given.get("interval_seconds") is None:
            given["anchor_at"] = None
            if not given.get("expression") and not {"expression", "interval_seconds"} & self.errors.keys():
                self.add_error("expression", _("Give a cron expression, or a number of seconds."))
        elif not given.get("timezone") and "timezone" not in self.errors:
            given["timezone"] = "UTC"
        if "options" in given:
            self._clean_options(given)
        definition = registry.find(given.get("task", ""))
        if definition is not None and "args" in given and "kwargs" in given:
            self._bind(definition, given)
        return given

    def _clean_options(self, given: dict[str, Any]) -> None:
        try:
            given["options"] = storable_options(given["options"])
        except InvalidOption as error:
            self.add_error("options", str(error))
            return
        definition = registry.find(given.get("task", ""))
        queue = given["options"].get("queue") or (definition.options.queue if definition else None)
        if isinstance(queue, str):
            try:
                require_declared(queue)
            except QueueNotDeclared as error:
                self.add_error("options", str(error))

    def _bind(self, definition: TaskDefinition, given: dict[str, Any]) -> None:
        if given.get("factory"):
            self.instance.arguments = {"args": given["args"], "kwargs": given["kwargs"]}
            if not given["args"] and not given["kwargs"]:
                self.instance.arguments = {}
            return
        longest = jobs_settings().MAX_ARGUMENT_BYTES
        try:
            text = definition.parameters.encode(given["args"], given["kwargs"], max_bytes=longest)
        except InvalidArguments as refused:
            self.add_error(blamed(definition, given, str(refused)), with_signature(definition, str(refused)))
        else:
            self.instance.arguments = json.loads(text)

    def _keep_unchanged(self, given: dict[str, Any]) -> None:
        """Inputs show instants to the second and trim texts: saving must not cut what is there."""
        if self.instance._state.adding:
            return
        for name in INSTANTS:
            if name in self.errors and name not in self.changed_data:
                del self.errors[name]  # shown by a clock that shows this time twice, and so not read back
                given[name] = None
        for name in given.keys() - set(self.changed_data) - set(JSON_FIELDS):
            given[name] = getattr(self.instance, name)

    def _update_errors(self, errors: ValidationError) -> None:
        """The model speaks of `arguments`, which are two fields here, and repeats what the form has found."""
        found = dict(errors.error_dict)
        about_call = found.pop("arguments", None)
        if about_call and not {"args", "kwargs"} & self.errors.keys():
            found["args"] = about_call
        known = set(self.errors)
        if known & {"expression", "interval_seconds"}:
            known |= {"expression", "interval_seconds"}  # what is wrong with one looks as if both were empty
        kept = {name: messages for name, messages in found.items() if name not in known}
        if kept:
            super()._update_errors(ValidationError(kept))  # type: ignore[misc]

    def _offer(self, name: str, known: tuple[str, ...], stored: str) -> None:
        if name in self.fields:
            names = [*known, *([stored] if stored and stored not in known else [])]
            self.fields[name].choices = [("", "---------"), *((one, one) for one in names)]  # type: ignore[attr-defined]

    def _explain(self, name: str, text: str) -> None:
        if name in self.fields:
            self.fields[name].help_text = text


def _initial(row: Schedule | None) -> dict[str, Any]:
    if row is None:
        return {"timezone": django_settings.TIME_ZONE or "UTC", "args": "[]", "kwargs": "{}", "options": "{}"}
    stored = row.arguments if isinstance(row.arguments, dict) else {}
    parts = (stored.get("args", []), stored.get("kwargs", {}), row.options)
    return {name: json.dumps(part, ensure_ascii=False) for name, part in zip(JSON_FIELDS, parts, strict=True)}
