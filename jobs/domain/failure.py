"""An exception turned into bounded text, whatever the exception does."""

from __future__ import annotations

import os
import sysconfig
from functools import lru_cache
from types import TracebackType

from jobs.domain.outcome import Failure
from jobs.domain.text import class_path, clean_text
from jobs.domain.traceback_text import MESSAGE_BYTES, chain_of, chain_text, message_of, steps_of, traceback_of

__all__ = ["MESSAGE_BYTES", "TRACEBACK_BYTES", "clean_text", "describe", "system_failure"]

TRACEBACK_BYTES = 64 * 1024

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY_FOLDERS = tuple(
    os.path.join(folder, "")
    for given in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _OWN_FOLDER)
    for folder in (given, os.path.realpath(given))
)


def describe(exception: BaseException) -> Failure:
    """The exception as text; never raises, and keeps nothing of it alive."""
    name = class_path(type(exception))
    try:
        chain = chain_of(exception)
        module, function = _project_frame(traceback_of(exception))
        return Failure(
            exception_class=name,
            message=message_of(exception),
            traceback=clean_text("".join(chain_text(chain)), TRACEBACK_BYTES),
            causes=tuple(class_path(type(link)) for link, _ in chain[1:]),
            module=module,
            function=function,
        )
    except BaseException:  # noqa: BLE001 - out of memory or of stack: the class is still worth recording
        return Failure(name, "<this exception could not be described>", "")


def system_failure(kind: str, message: str) -> Failure:
    """A failure without an exception of the job's own, such as `jobs.WorkerDied`."""
    return Failure(clean_text(kind, 200), clean_text(message, MESSAGE_BYTES), "")


def _project_frame(first: TracebackType | None) -> tuple[str, str]:
    """Module and function of the innermost frame that is the project's own code."""
    innermost = None
    for step in steps_of(first):
        if _is_project_file(step.tb_frame.f_code.co_filename):
            innermost = step
    if innermost is None:
        return "", ""
    module = innermost.tb_frame.f_globals.get("__name__")
    code = innermost.tb_frame.f_code
    function: str = getattr(code, "co_qualname", code.co_name)
    return clean_text(str.__str__(module), 200) if isinstance(module, str) else "", clean_text(function, 200)


@lru_cache(maxsize=4096)
def _is_project_file(filename: str) -> bool:
    if filename.startswith("<") or filename.startswith(_LIBRARY_FOLDERS):
        return False
    path = filename.replace("\\", "/")
    return "/site-packages/" not in path and "/dist-packages/" not in path
