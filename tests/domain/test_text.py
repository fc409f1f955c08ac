from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jobs.domain.text import class_path, clean_text, shown

anything = st.text(st.characters(exclude_categories=[]))


@given(anything, st.integers(80, 400))
def test_clean_text_is_storable_and_never_longer_than_the_limit(text: str, limit: int) -> None:
    cleaned = clean_text(text, limit)
    assert "\0" not in cleaned
    assert len(cleaned.encode()) <= limit


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50))
def test_storable_text_within_the_limit_is_unchanged(text: str) -> None:
    assert clean_text(text, 200) == text


def test_nul_and_lone_surrogates_become_their_escapes() -> None:
    assert clean_text("a\0b\ud800c", 100) == r"a\u0000b\ud800c"


@given(st.text("abc€\0\ud800😀", min_size=500, max_size=3000), st.integers(100, 400))
def test_a_cut_keeps_both_ends_and_says_how_many_characters_are_missing(text: str, limit: int) -> None:
    found = re.fullmatch(r"(.*)\n\.\.\. (\d+) characters left out \.\.\.\n(.*)", clean_text(text, limit), re.DOTALL)
    assert found is not None

    def unescaped(part: str) -> str:
        return part.replace("\\u0000", "\0").replace("\\ud800", "\ud800")

    head, tail = unescaped(found[1]), unescaped(found[3])
    assert head
    assert tail
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(found[2]) + len(tail) == len(text)


def test_a_limit_too_small_for_the_note_still_holds() -> None:
    assert clean_text("x" * 1000, 5) == "xxxxx"


def test_class_path_survives_hostile_classes() -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> object:
            raise SystemExit

    class Hostile(metaclass=Meta):
        __module__ = None  # type: ignore[assignment]

    assert class_path(Hostile).endswith("Hostile")
    assert class_path(ValueError) == "builtins.ValueError"
    assert len(class_path(type("x" * 5000, (), {}))) <= 200


def test_shown_never_raises() -> None:
    class Bomb:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Bomb" in shown(Bomb())
    assert shown(10**6000) == "<int>"
    assert shown("é\0") == r"'\xe9\x00'"
    assert len(shown("x" * 1000)) == 80
