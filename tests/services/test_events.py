from __future__ import annotations

import threading

from console.domain.telemetry.sample import Sample
from console.services.events import REASONS_PER_DROPLET, EventQueue
from console.services.link import Event, LinkState, Phase


def _sample(droplet: str, seq: int) -> Event:
    return Event(droplet, sample=Sample(droplet=droplet, time=0.0, seq=seq, stream="s", interval=None))


def _large(droplet: str, seq: int, reasons: int) -> Event:
    unavailable = {str(number): "why" for number in range(reasons)}
    sample = Sample(droplet=droplet, time=0.0, seq=seq, stream="s", interval=None, unavailable=unavailable)
    return Event(droplet, sample=sample)


def _link(droplet: str, phase: Phase) -> Event:
    return Event(droplet, link=LinkState(phase, phase.value, 0.0))


def _drain(queue: EventQueue) -> list[Event]:
    events = []
    while (event := queue.get(0)) is not None:
        events.append(event)
    return events


def test_a_slow_reader_loses_the_oldest_samples_and_is_told_how_many() -> None:
    queue = EventQueue(samples_per_droplet=3)
    for seq in range(10):
        queue.put(_sample("a", seq))
    assert [event.sample.seq for event in _drain(queue) if event.sample] == [7, 8, 9]
    assert queue.dropped == {"a": 7}


def test_large_samples_are_fewer_but_never_none() -> None:
    queue = EventQueue()
    for seq in range(10):
        queue.put(_large("a", seq, REASONS_PER_DROPLET // 3))
    queue.put(_large("b", 0, REASONS_PER_DROPLET * 2))
    queue.put(_large("b", 1, REASONS_PER_DROPLET * 2))
    assert [(event.droplet, event.sample.seq) for event in _drain(queue) if event.sample] == [
        ("a", 7),
        ("a", 8),
        ("a", 9),
        ("b", 1),
    ]
    assert queue.dropped == {"a": 7, "b": 1}
    queue.put(_large("a", 11, REASONS_PER_DROPLET))
    assert len(_drain(queue)) == 1, "what was read takes no room any more"


def test_states_of_the_line_are_never_dropped_and_keep_their_place() -> None:
    queue = EventQueue(samples_per_droplet=1)
    queue.put(_link("a", Phase.CONNECTING))
    queue.put(_sample("a", 0))
    queue.put(_link("a", Phase.STALLED))
    queue.put(_sample("a", 1))
    kinds = [event.link.phase.value if event.link else "sample" for event in _drain(queue)]
    assert kinds == ["connecting", "stalled", "sample"]


def test_one_droplet_ahead_takes_no_room_from_another() -> None:
    queue = EventQueue(samples_per_droplet=2)
    queue.put(_sample("quiet", 0))
    for seq in range(100):
        queue.put(_sample("loud", seq))
    assert [event.droplet for event in _drain(queue)] == ["quiet", "loud", "loud"]


def test_closing_wakes_a_reader() -> None:
    queue = EventQueue()
    got: list[Event | None] = []
    reader = threading.Thread(target=lambda: got.append(queue.get(30)))
    reader.start()
    queue.close()
    reader.join(5)
    assert got == [None]
