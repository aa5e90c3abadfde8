"""The terminal, and what happens when it goes away: Textual's driver, which would wait for it for ever."""

from __future__ import annotations

import os
import select
import signal
import threading

from textual.drivers.linux_driver import LinuxDriver

HANGUP = 128 + signal.SIGHUP


class TerminalDriver(LinuxDriver):
    """Ends the app when the terminal is gone, and never blocks on what nobody reads."""

    def write(self, data: str) -> None:
        """Send to the terminal; dropped once the thread that writes has died of a closed one."""
        writer = self._writer_thread
        if writer is not None and writer.is_alive():
            writer.write(data)

    def close(self) -> None:
        """End the writing thread, where it still lives."""
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().close()

    def _run_input_thread(self) -> None:
        watcher = threading.Thread(target=self._watch_terminal, name="terminal gone", daemon=True)
        watcher.start()
        try:
            self.run_input_thread()
        except OSError:
            self._terminal_gone()

    def _watch_terminal(self) -> None:
        """Textual's reader takes the end of input for silence and would spin on it."""
        poll = select.poll()
        poll.register(self.fileno, select.POLLHUP)
        while not self.exit_event.is_set():
            try:
                gone = any(seen & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, seen in poll.poll(500))
            except OSError:
                gone = True
            if gone:
                self._terminal_gone()
                return

    def _terminal_gone(self) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
