"""An engine that batches in flight, without a model: the clockwork that TensorRT-LLM and vLLM share.

Requests wait until one of ``slots`` is free. Every step takes ``step_s`` and gives every running request one token,
whenever it came in: the batch changes from step to step, inside the backend, where Triton cannot see it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable


class Sequence:
    """One request on its way: how many tokens it brought, how many it wants, and who gets them."""

    def __init__(self, prompt: int, wanted: int, send: Callable[[int], None], finish: Callable[[], None]) -> None:
        self.prompt = prompt
        self.wanted = wanted
        self.send = send
        self.finish = finish
        self.tokens = 0
        self.arrived = self.last = time.monotonic()


class Step:
    """What one step did: the figures that the backends publish."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting = 0
        self.held_tokens = 0
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self.first_token_s: list[float] = []
        self.between_tokens_s: list[float] = []
        self.request_s: list[float] = []


class Engine:
    """The scheduler's loop, on a thread of its own."""

    def __init__(self, slots: int, step_s: float, publish: Callable[[Step], None]) -> None:
        self.slots = slots
        self.step_s = step_s
        self.publish = publish
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.stopping = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        with self.changed:
            self.waiting.append(sequence)
            self.changed.notify()

    def close(self) -> None:
        """Finish what was accepted, then end."""
        with self.changed:
            self.stopping = True
            self.changed.notify()
        self.thread.join()

    def admit(self, step: Step) -> bool:
        """Fill free slots; False when there is nothing left to do and the end was asked for."""
        with self.changed:
            while not (self.waiting or self.running or self.stopping):
                self.changed.wait()
            while self.waiting and len(self.running) < self.slots:
                sequence = self.waiting.popleft()
                step.prompt_tokens += sequence.prompt
                self.running.append(sequence)
            step.running, step.waiting = len(self.running), len(self.waiting)
        return bool(self.running)

    def advance(self, sequence: Sequence, step: Step) -> None:
        """One token for one request."""
        now = time.monotonic()
        (step.between_tokens_s if sequence.tokens else step.first_token_s).append(now - sequence.last)
        sequence.last = now
        sequence.tokens += 1
        step.generated_tokens += 1
        if sequence.tokens >= sequence.wanted:
            step.request_s.append(now - sequence.arrived)

    def loop(self) -> None:
        """Steps until closed."""
        while True:
            step = Step()
            if not self.admit(step):
                break
            step.held_tokens = sum(one.prompt + one.tokens for one in self.running)
            self.publish(step)
            time.sleep(self.step_s)
            stepped = self.running
            self.publish(self.finish_step())  # before the answers: who has one finds it counted
            for sequence in stepped:
                sequence.send(sequence.tokens)
                if sequence.tokens >= sequence.wanted:
                    sequence.finish()

    def finish_step(self) -> Step:
        """Count a token for every running request, and drop those that have all they wanted."""
        step = Step()
        for sequence in self.running:
            self.advance(sequence, step)
        self.running = [one for one in self.running if one.tokens < one.wanted]
        with self.changed:
            step.running, step.waiting = len(self.running), len(self.waiting)
        step.held_tokens = sum(one.prompt + one.tokens for one in self.running)
        return step
