"""Form fields for the arguments of a call, and which of them a refusal is about."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from jobs.admin.call_text import signature_text
from jobs.domain.task import TaskDefinition


class JSONArguments(forms.CharField):
    """JSON of one kind, read strictly: a repeated name, which Python would drop, is an error."""

    widget = forms.Textarea(attrs={"rows": 3, "cols": 60, "class": "vLargeTextField", "spellcheck": "false"})

    def __init__(self, kind: type, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)
        self.kind = kind

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return self.kind()
        try:
            given = json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant)
        except RecursionError:
            raise forms.ValidationError(_("This is nested too deeply.")) from None
        except ValueError as error:
            raise forms.ValidationError(_("This is not JSON: %(error)s") % {"error": error}) from None
        if not isinstance(given, self.kind):
            wanted = _("a list, as in [42, true]") if self.kind is list else _('an object, as in {"seconds": 60}')
            raise forms.ValidationError(_("Give %(wanted)s.") % {"wanted": wanted})
        return given


def blamed(definition: TaskDefinition, given: dict[str, Any], message: str) -> str:
    """The field to correct: the named arguments when the refusal is about them, else the positional ones."""
    if message.startswith(f"{definition.parameters.name}(): kwargs"):  # the path to what cannot be stored
        return "kwargs"
    signature = definition.parameters.signature
    try:
        signature.bind_partial(*given["args"])
    except TypeError:
        return "args"
    try:
        signature.bind_partial(*given["args"], **given["kwargs"])
    except TypeError:
        return "kwargs"
    return "args"


def with_signature(definition: TaskDefinition, message: str) -> str:
    """The refusal of a call that does not fit, and what would; a value that cannot be stored names its path itself."""
    if message.startswith((f"{definition.parameters.name}(): args", f"{definition.parameters.name}(): kwargs")):
        return message
    return _("%(message)s. It takes %(signature)s") % {"message": message, "signature": signature_text(definition)}


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(_("the name %(name)s is given twice") % {"name": json.dumps(repeated)})
    return found


def _refuse_constant(constant: str) -> None:
    raise ValueError(_("%(constant)s is no JSON number") % {"constant": constant})
