from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.telemetry.text import LIMIT, printable


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\x00b", "a\\x00b"),
        ("a\x7fb\x9b2J", "a\\x7fb\\x9b2J"),
        ("two\nlines\r\n\ttab", "two\\nlines\\r\\n\\ttab"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("\u2066isolate\u2069", "\\u2066isolate\\u2069"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028separator\u2029", "line\\u2028separator\\u2029"),
        ("lone \ud800 surrogate", "lone \\ud800 surrogate"),
        ("hangul\u3164filler", "hangul\\u3164filler"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("no-break\u00a0space", "no-break space"),
    ],
)
def test_what_would_act_is_shown_as_its_escape(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@pytest.mark.parametrize("text", ["", "plain text", "Grüße", "日本語モデル", "résumé [bold]", "मॉडल", "🚀"])
def test_what_people_write_stays(text: str) -> None:
    assert printable(text) == text


def test_a_tower_of_combining_marks_is_cut_down() -> None:
    shown = printable("e" + "\u0301" * 200)
    assert sum(1 for char in shown if unicodedata.combining(char)) == 4


def test_escapes_count_for_the_limit() -> None:
    assert printable("\x1b" * 1000, 20) == "\\x1b\\x1b\\x1b\\x1b\\x1…"


def test_a_megabyte_is_cut_with_a_mark_at_the_end() -> None:
    shown = printable("x" * 1_000_000)
    assert len(shown) == LIMIT
    assert shown.endswith("…")


@given(st.text(st.characters(exclude_categories=[]), max_size=600))
def test_nothing_that_acts_ever_comes_out(text: str) -> None:
    shown = printable(text)
    assert all(char.isprintable() for char in shown)
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)
    shown.encode("utf-8")
    assert len(shown) <= LIMIT


@given(st.text(st.characters(exclude_categories=[]), max_size=100))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert printable(printable(text, 100), 1000) == printable(text, 100)
