from __future__ import annotations

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote_scripts.triton.prometheus import CACHE_LIMIT, Page, split_sample


def read(text: bytes) -> tuple[list[tuple[str, float]], int]:
    page = Page(lambda name, labels, series: series)
    return list(page.read(text)), page.garbage


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a 1", ("a", {}, "a", 1.0)),
        ("a 1 1700000000", ("a", {}, "a", 1.0)),
        ('a{x="1"} 2', ("a", {"x": "1"}, 'a{x="1"}', 2.0)),
        ('a{x="1",} 2', ("a", {"x": "1"}, 'a{x="1",}', 2.0)),
        ('a{ x = "1" , y="2" } 2 17', ("a", {"x": "1", "y": "2"}, 'a{ x = "1" , y="2" }', 2.0)),
        ('a{x="b\\"c\\\\d\\ne"} 3', ("a", {"x": 'b"c\\d\ne'}, 'a{x="b\\"c\\\\d\\ne"}', 3.0)),
        ('a{x="} 1"} 4', ("a", {"x": "} 1"}, 'a{x="} 1"}', 4.0)),
        ("vllm:x 5", ("vllm:x", {}, "vllm:x", 5.0)),
        ('a_bucket{le="+Inf"} 6 # {trace_id="q"} 0.5', ("a_bucket", {"le": "+Inf"}, 'a_bucket{le="+Inf"}', 6.0)),
        ("a{} 7", ("a", {}, "a{}", 7.0)),
    ],
)
def test_a_line_is_taken_apart(line: str, expected: object) -> None:
    assert split_sample(line) == expected


@pytest.mark.parametrize(
    "line", ["", "a", "a b", "{} 1", 'a{x="1" 2', "a{x=1} 2", 'a{="1"} 2', 'a{x="1', 'a{x="1\\', "a{", 'a{x="1"}']
)
def test_what_is_no_sample_is_none(line: str) -> None:
    assert split_sample(line) is None


def test_values_that_are_no_numbers_and_infinities() -> None:
    samples, garbage = read(b"a Nan\nb +Inf\nc -Inf\nd 1e3\n")
    assert [name for name, _ in samples] == ["a", "b", "c", "d"]
    assert math.isnan(samples[0][1])
    assert [value for _, value in samples[1:]] == [math.inf, -math.inf, 1000.0]
    assert garbage == 0


def test_comments_and_empty_lines_are_no_garbage() -> None:
    assert read(b"# HELP a x y\n# TYPE a counter\n\n  \n# EOF\na 1\r\n") == ([("a", 1.0)], 0)


def test_garbage_is_counted_and_passed_over() -> None:
    assert read(b"a 1\nrubbish\n\xff\xfe{\nb 2") == ([("a", 1.0), ("b", 2.0)], 2)


def test_a_line_of_a_megabyte_is_garbage() -> None:
    assert read(b'a{x="' + b"y" * (1 << 20) + b'"} 1\nb 2') == ([("b", 2.0)], 1)


def test_a_second_page_tells_the_new_values() -> None:
    page = Page(lambda name, labels, series: labels.get("m"))
    assert list(page.read(b'a{m="x"} 1\nb 7\n')) == [("x", 1.0)]
    assert list(page.read(b'a{m="x"} 2\nb 8\na{m="y"} 3\n')) == [("x", 2.0), ("y", 3.0)]


def test_a_known_series_whose_value_is_broken_is_garbage() -> None:
    page = Page(lambda name, labels, series: series)
    assert list(page.read(b"a 1")) == [("a", 1.0)]
    assert list(page.read(b"a x")) == []
    assert page.garbage == 1


def test_ever_new_series_do_not_grow_the_memory() -> None:
    page: Page[str] = Page(lambda name, labels, series: None)
    for turn in range(4):
        text = b"\n".join(b"a%d_%d 1" % (turn, number) for number in range(CACHE_LIMIT))
        assert list(page.read(text)) == []
    assert len(page._known) <= CACHE_LIMIT + 1


def test_ever_new_long_series_do_not_grow_the_memory() -> None:
    page: Page[str] = Page(lambda name, labels, series: series[:512])
    tracemalloc.start()
    try:
        for turn in range(8):
            text = b"\n".join(b'a%d_%d{x="%s"} 1' % (turn, number, b"y" * 8000) for number in range(1000))
            assert len(list(page.read(text))) == 1000
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept - len(text) < 8 << 20, f"{kept >> 20} MiB"


@given(st.binary(max_size=200))
def test_nothing_makes_it_stumble(text: bytes) -> None:
    read(text)
    read(b"a" + text)
    read(b'a{x="' + text)


@given(
    st.from_regex(r"[a-z_:][a-z0-9_:]{0,8}", fullmatch=True),
    st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), st.text(max_size=10), max_size=4),
    st.floats(allow_nan=False),
)
def test_what_is_written_as_prometheus_does_is_read_back(name: str, labels: dict[str, str], value: float) -> None:
    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    inside = ",".join(f'{key}="{escape(text)}"' for key, text in labels.items())
    found = split_sample(f"{name}{{{inside}}} {value!r}")
    assert found is not None
    assert (found[0], found[1], found[3]) == (name, labels, value)
