"""The entry: which command, with what flags, and what its end means to a shell.

Kept as cheap as a shell tool: nothing is imported here that ``--help`` does not need. A command's own module, and
with it the settings, the network and the rest, is imported when that command runs.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.cli import options
from console.cli.exits import Exit, UsageError

PROGRAM = "droplet-console"
_OUTPUT_LOST = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_WITH_VALUE = frozenset({"--config", "--timeout", "--server"})


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        help: One line.
        describe: Adds its own arguments.
        run: Runs it and returns the exit status.
        honoured: The shared flags it can honour, beyond ``options.ALWAYS``.
    """

    help: str
    describe: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, options.Options], Exit]
    honoured: frozenset[str] = frozenset()


def _describe_droplets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="*", metavar="NAME|@GROUP|@TAG", help="only these")


def _run_droplets(arguments: argparse.Namespace, given: options.Options) -> Exit:
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


def _run_status(arguments: argparse.Namespace, given: options.Options) -> Exit:
    from console.cli.status import run

    return run(arguments.target, given, first=arguments.first)


def _describe_watch(parser: argparse.ArgumentParser) -> None:
    _describe_targets(parser)
    parser.add_argument("--interval", type=options.seconds, metavar="S", help="seconds between samples")
    parser.add_argument("--count", type=_count, metavar="N", help="end after so many samples of each droplet")


def _run_watch(arguments: argparse.Namespace, given: options.Options) -> Exit:
    from console.cli.watch import run

    return run(arguments.target, given, interval=arguments.interval, count=arguments.count)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


_REMOTE = frozenset({"timeout", "server"})
COMMANDS = {
    "droplets": Command("the inventory", _describe_droplets, _run_droplets),
    "status": Command("one picture of each droplet, then exit", _describe_status, _run_status, _REMOTE),
    "watch": Command("samples as they come", _describe_watch, _run_watch, _REMOTE),
}


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Operations for GPU droplets that serve models with NVIDIA Triton.",
        epilog="Exit status: 0 done, 1 not well, 2 usage or settings, 3 no connection, 4 rolled back, "
        "5 state not known, 6 refused, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    options.add(parser, frozenset(options.Options.__slots__))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.help, description=command.help, allow_abbrev=False)
        command.describe(own)
        options.add(own, options.ALWAYS | command.honoured)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        argv: The words after the program's name; those of the process by default.

    Returns:
        The exit status (``Exit``).
    """
    try:
        status = _dispatch(sys.argv[1:] if argv is None else list(argv))
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


def _dispatch(words: list[str]) -> Exit:
    try:
        _check_command(words)
        arguments = build_parser().parse_args(words)
        if arguments.version:
            from console import __version__

            sys.stdout.write(f"{PROGRAM} {__version__}\n")
            return Exit.DONE
        if arguments.command is None:
            build_parser().print_help(sys.stderr)
            return Exit.USAGE
        command = COMMANDS[arguments.command]
        given = options.read(arguments, arguments.command, options.ALWAYS | command.honoured)
        return _run(command, arguments, given)
    except UsageError as error:
        _say(str(error))
        return Exit.USAGE
    except SystemExit as end:  # argparse: its usage error, or --help
        return Exit.DONE if not end.code else Exit.USAGE


def _run(command: Command, arguments: argparse.Namespace, given: options.Options) -> Exit:
    from console.remote.errors import RemoteError
    from console.settings.errors import SettingsError

    try:
        return command.run(arguments, given)
    except SettingsError as error:
        for mistake in error.mistakes:
            _say(str(mistake))
        return Exit.USAGE
    except RemoteError as error:
        _say(f"{error}\n{error.hint}" if error.hint else str(error))
        return Exit.NO_CONNECTION


def _check_command(words: list[str]) -> None:
    """Refuse an unknown command in words of our own: argparse's list what is possible, not what was meant."""
    waiting = iter(words)
    for word in waiting:
        if word in _WITH_VALUE:
            next(waiting, None)
        elif not word.startswith("-"):
            if word in COMMANDS:
                return
            close = difflib.get_close_matches(word, COMMANDS, n=1)
            meant = f"did you mean {close[0]}?" if close else f"for a droplet: `{PROGRAM} status {word!a}`"
            raise UsageError(f"no command {word!a}; {meant} (commands: {', '.join(COMMANDS)})")


def _say(text: str) -> None:
    sys.stderr.write(f"{PROGRAM}: {text}\n")
