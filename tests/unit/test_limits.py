from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.remote.errors import FailureKind, RemoteError
from console.remote.login.limits import WINDOW, FleetSlots, LoginRate
from console.remote.login.login_log import LoginLog


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def knock(rate: LoginRate, address: str = "web1") -> bool:
    """One login that the other side notices; whether it was let through."""
    try:
        with rate.attempt(address, address) as attempt:
            attempt.noticed()
    except RemoteError:
        return False
    return True


@given(steps=st.lists(st.floats(0, 20), min_size=1, max_size=60))
def test_there_are_never_more_than_4_logins_in_any_30_seconds(steps: list[float]) -> None:
    clock = Clock()
    rate = LoginRate(clock=clock)
    made = []
    for step in steps:
        clock.now += step
        if knock(rate):
            made.append(clock.now)
        else:
            assert sum(1 for when in made if clock.now - when < 30) == 4
    for index in range(len(made) - 4):
        assert made[index + 4] - made[index] >= 30


def test_it_says_when_the_next_one_is_due() -> None:
    clock = Clock()
    rate = LoginRate(clock=clock)
    for _ in range(4):
        assert knock(rate)
        clock.now += 2
    with pytest.raises(RemoteError) as caught, rate.attempt("web1", "web1"):
        pass
    assert caught.value.kind is FailureKind.LIMITED
    assert caught.value.retry_after == rate.wait("web1") == 22
    clock.now += 22
    assert knock(rate)


def test_attempts_that_nobody_noticed_do_not_count() -> None:
    rate = LoginRate(clock=Clock())
    for _ in range(10):
        with rate.attempt("web1", "web1"):
            pass
    assert all(knock(rate) for _ in range(4))


def test_attempts_in_progress_count() -> None:
    rate = LoginRate(clock=Clock())
    with (
        rate.attempt("web1", "web1"),
        rate.attempt("web1", "web1"),
        rate.attempt("web1", "web1"),
        rate.attempt("web1", "web1"),
    ):
        assert not knock(rate)
    assert knock(rate)


def test_each_address_has_a_window_of_its_own() -> None:
    rate = LoginRate(clock=Clock())
    assert [knock(rate, "a") for _ in range(5)] == [True] * 4 + [False]
    assert knock(rate, "b")


def test_at_most_ten_logins_are_in_progress() -> None:
    slots = FleetSlots(10)
    inside, most = 0, 0
    lock = threading.Lock()
    go = threading.Event()

    def log_in() -> None:
        nonlocal inside, most
        with slots.slot():
            with lock:
                inside += 1
                most = max(most, inside)
            go.wait(0.05)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=log_in) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most == 10


def test_a_login_that_waits_for_a_person_lends_its_place() -> None:
    slots = FleetSlots(1)
    with slots.slot() as slot, slot.lent():
        done = threading.Event()

        def other() -> None:
            with slots.slot():
                done.set()

        threading.Thread(target=other, daemon=True).start()
        assert done.wait(5)


def test_the_place_is_given_back_after_an_error() -> None:
    slots = FleetSlots(1)
    for _ in range(3):
        with pytest.raises(ValueError, match="boom"), slots.slot() as slot, slot.lent():
            raise ValueError("boom")
    with slots.slot():
        pass


def test_places_of_those_who_do_not_answer_go_to_others_after_a_while() -> None:
    clock = Clock()
    slots = FleetSlots(2, patience=3.0, clock=clock)
    with slots.slot() as answered, slots.slot() as silent:
        answered.heard()
        clock.now += 3.0
        with slots.slot() as third:
            third.heard()
            late = threading.Thread(target=silent.heard, daemon=True)
            late.start()
            late.join(0.2)
            assert late.is_alive(), "three logins are in progress"
        late.join(5)
        assert not late.is_alive()


def test_who_waits_for_a_place_notices_by_himself_that_one_is_silent() -> None:
    slots = FleetSlots(1, patience=0.2)
    with slots.slot():
        entered = threading.Event()

        def other() -> None:
            with slots.slot():
                entered.set()

        threading.Thread(target=other, daemon=True).start()
        assert entered.wait(5)


def consoles(path: Path, clock: Clock, count: int) -> list[LoginRate]:
    """Of one machine and one user; in truth each is a process of its own."""
    return [LoginRate(clock=clock, log=LoginLog(path, WINDOW, clock)) for _ in range(count)]


def test_consoles_that_come_again_by_themselves_share_the_window(tmp_path: Path) -> None:
    clock = Clock()
    rates = consoles(tmp_path / "logins", clock, 3)
    assert [knock(rate) for rate in rates] == [True] * 3
    made = [clock.now] * 3
    for _ in range(300):
        clock.now += 1
        made += [clock.now for rate in rates if knock(rate)]
    for index in range(len(made) - 4):
        assert made[index + 4] - made[index] >= 30
    assert len(made) >= 4 * 10, "nor are they kept from what they may do"


def test_a_first_login_waits_for_no_other_console(tmp_path: Path) -> None:
    clock = Clock()
    *others, last = consoles(tmp_path / "logins", clock, 7)
    assert all(knock(rate) for rate in others)
    assert knock(last)
    assert not knock(last)
    with pytest.raises(RemoteError) as caught, last.attempt("web1", "web1"):
        pass
    assert caught.value.retry_after == 30
    assert knock(last, "web2")


@pytest.mark.parametrize("content", [b"", b"x y z\n\xff\xfe\0\n9e99 z a\nnan q b\n1\n" * 100, b"1e9 k a\n"])
def test_the_shared_file_may_hold_anything(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "logins"
    path.write_bytes(content)
    clock = Clock()
    (rate,) = consoles(path, clock, 1)
    assert [knock(rate) for _ in range(5)] == [True] * 4 + [False]
    assert len(path.read_bytes().splitlines()) == 4
    assert path.stat().st_mode & 0o777 in (0o600, 0o644)


def test_the_file_is_made_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state" / "logins"
    clock = Clock()
    first, second = consoles(path, clock, 2)
    assert knock(first)
    assert [knock(second) for _ in range(4)] == [True] * 3 + [False]
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)


def test_without_a_file_each_console_counts_for_itself(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (rate,) = consoles(tmp_path / "file" / "logins", Clock(), 1)
    assert [knock(rate) for _ in range(5)] == [True] * 4 + [False]
