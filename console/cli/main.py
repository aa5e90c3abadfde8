"""The entry: which command, with what flags, and what its end means to a shell.

Kept as cheap as a shell tool: nothing is imported here that ``--help`` does not need. A command's own module, and
with it the settings, the network and the rest, is imported when that command runs.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.cli import options
from console.cli.exits import Exit, UsageError

if TYPE_CHECKING:  # `droplet-console` and `droplet-console TARGET` have nothing to parse
    import argparse

    from console.cli.front import Front

PROGRAM = "droplet-console"
_OUTPUT_LOST = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_WITH_VALUE = frozenset({"--config", "--timeout", "--server", "--theme"})


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        help: One line.
        describe: Adds its own arguments.
        run: Runs it and returns the exit status; the last argument opens screens, where they are at hand.
        honoured: The shared flags it can honour, beyond ``options.ALWAYS``.
    """

    help: str
    describe: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, options.Options, Front | None], int]
    honoured: frozenset[str] = frozenset()


def _describe_droplets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="*", metavar="NAME|@GROUP|@TAG", help="only these")


def _run_droplets(arguments: argparse.Namespace, given: options.Options, _: Front | None) -> Exit:
    from console.cli.droplets import run

    return run(arguments.target, given)


def _describe_targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="+",
        metavar="TARGET",
        help="a name from the settings, @group, @tag, user@host:port, a Host of ~/.ssh/config, or local",
    )


def _describe_status(parser: argparse.ArgumentParser) -> None:
    _describe_targets(parser)
    parser.add_argument("--first", action="store_true", help="the first figures to come, without rates")


def _run_status(arguments: argparse.Namespace, given: options.Options, _: Front | None) -> Exit:
    from console.cli.status import run

    return run(arguments.target, given, first=arguments.first)


def _describe_watch(parser: argparse.ArgumentParser) -> None:
    _describe_targets(parser)
    parser.add_argument(
        "--interval",
        type=options.seconds,
        metavar="S",
        help="seconds between samples; default: as the settings say, otherwise 1",
    )
    parser.add_argument("--count", type=_count, metavar="N", help="end after so many samples of each droplet")


def _run_watch(arguments: argparse.Namespace, given: options.Options, _: Front | None) -> Exit:
    from console.cli.watch import run

    return run(arguments.target, given, interval=arguments.interval, count=arguments.count)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 10**9:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _describe_screens(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", choices=("dark", "light", "ansi"), help="colours; default: by the terminal")
    parser.add_argument("--ascii", action="store_true", help="no signs beyond ASCII")


def _describe_console(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="*", metavar="TARGET", help="droplets to show; none: all of the settings")
    _describe_screens(parser)


def _run_console(arguments: argparse.Namespace, given: options.Options, front: Front | None) -> int:
    from console.cli.console import run

    return run(arguments.target, given, front, theme=arguments.theme, plain=arguments.ascii)


def _run_demo(arguments: argparse.Namespace, given: options.Options, front: Front | None) -> int:
    from console.cli.console import run_demo

    return run_demo(given, front, theme=arguments.theme, plain=arguments.ascii)


_REMOTE = frozenset({"timeout", "server"})
_SCREENS = frozenset({"config", "read_only"})
CONSOLE = Command("the console", _describe_console, _run_console)
"""What a command line without a command means."""
COMMANDS = {
    "demo": Command("the console on an embedded practice droplet", _describe_screens, _run_demo),
    "droplets": Command("the inventory", _describe_droplets, _run_droplets),
    "status": Command("one picture of each droplet, then exit", _describe_status, _run_status, _REMOTE),
    "watch": Command("samples as they come", _describe_watch, _run_watch, _REMOTE),
}


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    import argparse

    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [FLAGS] [TARGET ...]\n       {PROGRAM} [FLAGS] COMMAND ...",
        description="Operations for GPU droplets that serve models with NVIDIA Triton.",
        epilog="Exit status: 0 done, 1 not well, 2 usage or settings, 3 no connection, 4 rolled back, "
        "5 state not known, 6 refused, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    options.add(parser, _SCREENS.union(*(_honoured(command) for command in COMMANDS.values())))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", prog=PROGRAM)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.help, description=command.help, allow_abbrev=False)
        command.describe(own)
        options.add(own, _honoured(command))
    return parser


def _console_parser() -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False)
    CONSOLE.describe(parser)
    options.add(parser, _honoured(CONSOLE))
    return parser


def _honoured(command: Command) -> frozenset[str]:
    if command is CONSOLE or command is COMMANDS["demo"]:
        return _SCREENS
    return options.ALWAYS | command.honoured


def main(argv: Sequence[str] | None = None, front: Front | None = None) -> int:
    """Run a command line.

    Args:
        argv: The words after the program's name; those of the process by default.
        front: Opens the screens; without it there are none.

    Returns:
        The exit status (``Exit``).
    """
    try:
        status = _dispatch(sys.argv[1:] if argv is None else list(argv), front)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = Exit.INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader has what it wanted (`watch | head`)
        status = Exit.DONE
    except OSError as error:
        if error.errno not in _OUTPUT_LOST or error.filename is not None:
            raise
        _drop_output()
        _say(f"the output could not be written: {error.strerror}")
        status = Exit.UNKNOWN_STATE
    return int(status)


def _drop_output() -> None:
    """Let nothing more be written to standard output, not even by the interpreter as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str], front: Front | None) -> int:
    try:
        name = _command(words)
        if name is None and not {"-h", "--help", "--version"} & set(words):
            if not any(word.startswith("-") for word in words):
                from console.cli.console import run

                return _run(lambda: run(words, options.Options(), front))
            arguments = _console_parser().parse_args(words)
            given = _given(arguments, "the console", CONSOLE)
            return _run(lambda: CONSOLE.run(arguments, given, front))
        arguments = build_parser().parse_args(words)
        if arguments.version:
            from console import __version__

            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            return Exit.DONE
        command = COMMANDS[arguments.command]
        given = _given(arguments, f"`{arguments.command}`", command)
        return _run(lambda: command.run(arguments, given, front))
    except UsageError as error:
        _say(str(error))
        return Exit.USAGE
    except SystemExit as end:  # argparse: its usage error, or --help
        return Exit.DONE if not end.code else Exit.USAGE


def _given(arguments: argparse.Namespace, called: str, command: Command) -> options.Options:
    try:
        return options.read(arguments, called, _honoured(command))
    except UsageError:
        if command is CONSOLE:
            from console.cli.console import misspelt

            mistake = misspelt(arguments.target)
            if mistake is not None:
                raise UsageError(mistake) from None
        raise


def _run(act: Callable[[], int]) -> int:
    from console.remote.errors import RemoteError
    from console.settings.errors import SettingsError

    try:
        return act()
    except SettingsError as error:
        for mistake in error.mistakes:
            _say(str(mistake))
        return Exit.USAGE
    except RemoteError as error:
        _say(f"{error}\n{error.hint}" if error.hint else str(error))
        return Exit.NO_CONNECTION


def _command(words: list[str]) -> str | None:
    """The command among the words; None where the first word that is no flag is a droplet, or there is none."""
    waiting = iter(words)
    for word in waiting:
        if word in _WITH_VALUE:
            next(waiting, None)
        elif not word.startswith("-"):
            return word if word in COMMANDS else None
    return None


def _say(text: str) -> None:
    sys.stderr.write(f"{PROGRAM}: {text}\n")
