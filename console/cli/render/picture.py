"""One droplet's sample as a picture for people: the host, the GPUs, the Triton servers, and what wants a hand."""

from __future__ import annotations

import time

from console.cli.output import Output, wrap_words
from console.cli.render.gpus import gpu_lines
from console.cli.render.servers import server_lines
from console.domain.telemetry.sample import HostSample, Sample
from console.domain.thresholds import Thresholds
from console.domain.words import figures as form
from console.domain.words import problems
from console.domain.words.cells import wrap
from console.domain.words.figures import NA, Figures
from console.remote.errors import RemoteError
from console.settings.schema import Droplet


def picture(droplet: Droplet, sample: Sample, thresholds: Thresholds, output: Output) -> list[str]:
    """The lines of a picture.

    Args:
        droplet: Whose it is; its colour and production mark are shown.
        sample: What is true about it.
        thresholds: Where advice begins.
        output: Where it goes: its width, and whether it takes colour.
    """
    figures = Figures(sample)
    wrong, hints = problems.problems(sample), problems.advice(sample, thresholds)
    lines = [heading(droplet, sample, len(wrong), output)]
    for mark, texts, colour in (("!!", wrong, "red"), ("!", hints, "yellow")):
        for text in texts:
            lines += [output.paint(line, colour) for line in wrap(f"{mark} {text}", output.width, "   ")]
    lines.append("")
    lines += _host_lines(sample.host, figures, output)
    lines += gpu_lines(sample, figures, output)
    lines += server_lines(sample, figures, output)
    reasons = [line for text in figures.reasons() for line in wrap(text, output.width, "  ")]
    if reasons:
        lines += ["", *(output.paint(line, "dim") for line in reasons)]
    return lines


def failure(droplet: Droplet, error: Exception, output: Output) -> list[str]:
    """What is shown in a picture's place; a ``RemoteError`` with its hint."""
    lines = [f"{_name(droplet, output)}  {output.paint('no figures', 'bold', 'red')}"]
    lines += [output.paint(line, "red") for line in wrap(f"!! {error}", output.width, "   ")]
    hint = error.hint if isinstance(error, RemoteError) else None
    for part in (hint or "").splitlines():
        lines += ["   " + line for line in wrap_words(part, output.width - 3)]
    return lines


def heading(droplet: Droplet, sample: Sample, wrong: int, output: Output) -> str:
    """The droplet's name and marks, how many problems it has, its host name where it differs, and the time."""
    verdict = output.paint("well", "green")
    if wrong:
        verdict = output.paint(f"{wrong} problem{'s' * (wrong > 1)}", "bold", "red")
    parts = [_name(droplet, output), verdict]
    if sample.host.hostname and sample.host.hostname != droplet.name:
        parts.append(f"({sample.host.hostname})")
    if sample.host.uptime_s is not None:
        parts.append(f"up {form.duration(sample.host.uptime_s)}")
    parts.append(time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(sample.time)))
    return "  ".join(parts)


def _name(droplet: Droplet, output: Output) -> str:
    name = output.paint(droplet.name, "bold", droplet.colour)
    return f"{name}  {output.paint('PRODUCTION', 'bold', 'red')}" if droplet.production else name


def _host_lines(host: HostSample, figures: Figures, output: Output) -> list[str]:
    cpu = figures.show(host.cpu.busy_percent, form.percent, "/host/cpu/busy_percent", "CPU")
    if host.cpu.cores:
        cpu += f" of {host.cpu.cores} cores" if host.cpu.cores > 1 else " of 1 core"
    cpu += f", load {figures.show(host.cpu.load1, form.number, '/host/cpu/load1', 'load')}"
    for value, name in ((host.cpu.iowait_percent, "iowait"), (host.cpu.steal_percent, "steal")):
        if value is not None and value >= 1:
            cpu += f", {name} {form.percent(value)}"
    read = figures.show(host.disk_read_rate, form.rate, "/host/disk_read_rate", "disk reads")
    written = figures.show(host.disk_write_rate, form.rate, "/host/disk_write_rate", "disk writes")
    received = figures.show(host.net_rx_rate, form.rate, "/host/net_rx_rate", "network in")
    sent = figures.show(host.net_tx_rate, form.rate, "/host/net_tx_rate", "network out")
    memory = _used(host.memory_total, host.memory_available, figures, "/host/memory_total", "memory")
    disk = _used(host.disk_total, host.disk_free, figures, "/host/disk_total", "disk")
    if host.swap_used:
        memory += f", swap {form.size(host.swap_used)}"
    return [
        f"{output.paint('HOST', 'bold')}    CPU      {cpu}",
        f"        memory   {memory}",
        f"        disk /   {disk}; read {read}, write {written}",
        f"        network  in {received}, out {sent}",
    ]


def _used(total: int | None, free: int | None, figures: Figures, pointer: str, what: str) -> str:
    if total is None or free is None or total <= 0:
        figures.note(figures.why(pointer), what)
        return NA
    used = total - free
    return f"{form.share(used, total)} ({form.whole_percent(100 * used / total)})"
