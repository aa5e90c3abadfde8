import pytest

from console.cli.render.table import table
from console.domain.words import figures as form
from console.domain.words.cells import fit, left, listed, right, width, wrap
from console.domain.words.figures import Figures
from tests.unit.cli.samples import sample


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.00"), (0.0001, "1e-04"), (0.0123, "0.012"), (0.5, "0.50"), (9.994, "9.99"), (9.996, "10.0"),
        (99.94, "99.9"), (99.96, "100"), (812.3, "812"), (999.6, "1,000"), (12345.6, "12,346"), (3e12, "3.00e+12"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert form.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0.0 %"), (0.02, "<0.1 %"), (87.5, "87.5 %"), (99.97, ">99.9 %"), (100, "100.0 %"), (-575, "-575.0 %")],
)
def test_percents_never_round_to_nothing_or_all(value: float, shown: str) -> None:
    assert form.percent(value) == shown


def test_units() -> None:
    assert form.milliseconds(0.02) == "20 µs"
    assert form.milliseconds(1.2) == "1.20 ms"
    assert form.milliseconds(1200) == "1.20 s"
    assert form.size(0) == "0 B"
    assert form.size(61 << 30) == "61.0 GiB"
    assert form.rate(1.25e6) == "1.2 MB/s"
    assert form.share(61 << 30, 80 << 30) == "61.0 of 80.0 GiB"
    assert form.duration(0) == "0 s"
    assert form.duration(86400 * 12 + 3600 * 4 + 59) == "12 d 4 h"
    assert form.duration(86400 + 5) == "1 d"
    assert form.duration(185) == "3 min 5 s"


def test_a_reason_stands_at_the_figure_or_above_it() -> None:
    figures = Figures(sample(unavailable={"/gpus/0": "the GPU is lost", "/gpus/0/power_w": "no sensor"}))
    assert figures.show(None, str, "/gpus/0/power_w", "POWER", of="GPU 0") == "n/a"
    figures.show(None, str, "/gpus/0/dram_percent", "DRAM", of="GPU 0")
    figures.show(None, str, "/gpus/0/dram_gb_s", "GB/s", of="GPU 0")
    figures.show(None, str, "/gpus/01/power_w", "POWER", of="GPU 1")
    assert figures.show(5, "{:.0f}".format, "/gpus/0", "X") == "5"
    assert figures.reasons() == [
        "POWER of GPU 0: n/a, because no sensor",
        "DRAM, GB/s of GPU 0: n/a, because the GPU is lost",
        "POWER of GPU 1: n/a, because the droplet gave no reason",
    ]


def test_same_figures_of_several_owners_stand_together() -> None:
    figures = Figures(sample())
    for gpu in range(12):
        figures.note("why", "DRAM", f"GPU {gpu}")
    (line,) = figures.reasons()
    assert line.startswith("DRAM of GPU 0, GPU 1, ")
    assert line.endswith(", GPU 6, 5 more: n/a, because why")


def test_widths_are_cells() -> None:
    assert width("模型") == 4
    assert width("e\u0301") == 1
    assert fit("模型模型", 5) == "模型…"
    assert fit("abc", 3) == "abc"
    assert left("模", 4) == "模  "
    assert right("模", 4) == "  模"


def test_wrapping_keeps_the_indent() -> None:
    assert wrap("  one two three", 9, "    ") == ["  one two", "    three"]
    assert wrap("", 9) == [""]


def test_a_table_cuts_its_first_column_alone() -> None:
    rows = [("MODEL", "RPS"), ("a-rather-long-name", "12,345")]
    assert table(rows, "<>", 20) == ["MODEL            RPS", "a-rather-lo…  12,345"]
    assert table(rows, "<>", None) == ["MODEL                  RPS", "a-rather-long-name  12,345"]


def test_names_without_room_are_counted() -> None:
    assert listed("x: ", ["one", "two", "three"], None) == "x: one, two, three"
    assert listed("x: ", ["one", "two", "three"], 18) == "x: one, two, three"
    assert listed("x: ", ["one", "two", "three"], 17) == "x: one, 2 more"
    assert listed("x: ", ["a" * 90, "two"], 20) == "x: aaaaaaaa…, 1 more"
    assert listed("x: ", ["a" * 90], 20) == "x: aaaaaaaaaaaaaaaa…"
    many = listed("x: ", [str(number) for number in range(10_000)], 80)
    assert (width(many) <= 80, many.endswith(" more")) == (True, True)
