"""`assert_never`, which the standard library has from Python 3.11 on."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from typing import assert_never
else:
    from typing_extensions import assert_never

__all__ = ["assert_never"]
