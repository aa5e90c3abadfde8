from __future__ import annotations

import tracemalloc
import zlib

import pytest

from console.remote.scripts.lines import MAX_EMPTY, MAX_LINE, LineReader


def packed(data: bytes) -> bytes:
    return zlib.compress(data)[:-4]  # a script's stream has no end


def all_lines(reader: LineReader) -> list[bytes]:
    lines = []
    while (line := reader.pop()) is not None:
        lines.append(line)
    return lines


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize("compressed", [False, True])
def test_lines_come_whole_however_they_arrive(step: int, compressed: bool) -> None:
    data = b"one\n\ntwo\nthree"
    sent = packed(data) if compressed else data
    reader = LineReader(compressed=compressed)
    lines = []
    for start in range(0, len(sent), step):
        reader.feed(sent[start : start + step])
        lines += all_lines(reader)
    assert lines == [b"one", b"two"]
    assert reader.rest


def test_a_flushed_line_can_be_read_before_the_next() -> None:
    deflate = zlib.compressobj()
    reader = LineReader(compressed=True)
    for word in (b"a", b"b" * 100_000, b"c"):
        reader.feed(deflate.compress(word + b"\n") + deflate.flush(zlib.Z_SYNC_FLUSH))
        assert all_lines(reader) == [word]
        assert not reader.rest


@pytest.mark.parametrize("compressed", [False, True])
def test_the_longest_line(compressed: bool) -> None:
    reader = LineReader(compressed=compressed)
    data = b"x" * (MAX_LINE - 1) + b"\n"
    reader.feed(packed(data) if compressed else data)
    assert [len(line) for line in all_lines_but_the_end(reader)] == [MAX_LINE - 1]


def all_lines_but_the_end(reader: LineReader) -> list[bytes]:
    line = reader.pop()
    return [] if line is None else [line]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_longer_line_is_refused(compressed: bool) -> None:
    reader = LineReader(compressed=compressed)
    data = b"x" * MAX_LINE + b"\n"
    reader.feed(packed(data) if compressed else data)
    with pytest.raises(ValueError, match="line of more than"):
        reader.pop()


def test_a_bomb_does_not_fill_the_memory() -> None:
    deflate = zlib.compressobj(9)
    bomb = b"".join(deflate.compress(bytes(1 << 20)) for _ in range(300)) + deflate.flush()
    reader = LineReader(compressed=True)
    tracemalloc.start()
    reader.feed(bomb)
    with pytest.raises(ValueError, match="line of more than"):
        reader.pop()
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


def test_many_lines_in_little_are_inflated_as_they_are_wanted() -> None:
    bomb = zlib.compress(b"{}\n" * 50_000_000, 9)
    reader = LineReader(compressed=True)
    tracemalloc.start()
    reader.feed(bomb)
    for _ in range(1000):
        assert reader.pop() == b"{}"
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("compressed", [False, True])
def test_empty_lines_without_end_are_refused_and_some_are_not(compressed: bool) -> None:
    reader = LineReader(compressed=compressed)
    some = b"\n" * (MAX_EMPTY - 1) + b"{}\n"
    data = some * 3 + b"\n" * 8_000_000
    reader.feed(packed(data) if compressed else data[: 4 * MAX_EMPTY + 10])
    if compressed:
        assert [reader.pop() for _ in range(3)] == [b"{}"] * 3
    with pytest.raises(ValueError, match="empty lines without end"):
        all_lines(reader)


@pytest.mark.parametrize("data", [b"no zlib", zlib.compress(b"end\n")])
def test_what_is_no_zlib_stream_is_refused(data: bytes) -> None:
    reader = LineReader(compressed=True)
    reader.feed(data)
    with pytest.raises(ValueError, match="zlib"):
        all_lines(reader)
