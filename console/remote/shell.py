"""The one command line that reaches a droplet's login shell, and what it does there.

The login shell may be anything (bash, fish, csh), so it is given nothing but ``exec sh -c '<constant>'`` and words
in single quotes that hold no quote, backslash pair, ``!``, newline or byte beyond ASCII: these mean the same to all
of them. ``sh`` decodes the words, prints the start mark (what came before it on standard output was noise of the
login shell, and without it the login shell never let us through), and becomes the command.

A guarded command leads a process group and has a watcher in it, which ends the whole group once the channel is
closed or the connection lost. The end of standard input is all that sshd tells of either, so input for the command
travels in frames and a deliberate end is a frame too: ``BLOCKS OF BYTES`` lines, see ``frame``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

MARK = b"\x01droplet-console/1 "
"""Begins every line that this product's own code on the droplet prints for this side."""
STARTED = MARK + b'{"sh":1}\n'
"""The start mark: all that follows on standard output is the command's own."""
KILL_AFTER = 2.0
"""Seconds from SIGTERM to SIGKILL for a guarded command."""

_DECODE = """l=$(printf %b "$@");eval "$l\""""
_WORD = 900
"""csh refuses words of 1,024 characters and more."""
_BLOCK = 1 << 16

_PRINT_MARK = r"""printf '\001droplet-console/1 {"sh":1}\n';"""

# Whoever calls us through `sh -c "$SSH_ORIGINAL_COMMAND"`, as forced commands do, leads the group in our place.
_OWN_GROUP = """
kill -0 -$$ 2>/dev/null || [ "$dc_grouped" ] || ! command -v setsid >/dev/null ||
 exec setsid sh -c 'dc_grouped=1;l=$1;eval "$l"' sh "$l";
"""

# The command's input is a named pipe: its other end is the watcher's, and the command itself keeps our process, and
# with it its exact exit status or signal.
_OPEN_INPUT = """
for d in /dev/shm /tmp "$HOME" -;
 do f=$d/.droplet-console.$$; [ $d = - ] || mkfifo -m 600 "$f" 2>/dev/null && break; done;
[ $d = - ] && { echo 'no place for a named pipe in /dev/shm, /tmp and the home folder' >&2; exit 126; };
exec 3<&0 4<>"$f" <"$f" 5>"$f" 4>&-; rm -f "$f";
"""
_NO_INPUT = "exec 3<&0 </dev/null;"

# dd without fullblock takes a short read for a block; then single bytes are right, if slow.
_FEED = """
dd iflag=fullblock </dev/null && b= || b=1;
while read -r n c <&3 && [ "$n" -gt 0 ];
 do if [ $b ]; then dd bs=1 count=$((n*c)); else dd iflag=fullblock bs=$n count=$c; fi <&3 >&5 || break; done;
exec 5>&-;
"""
# Twice in the background, so that the command does not have a child that it does not know of. Once the command is
# gone there is nothing to be patient for.
_WATCH = """
((trap '' TERM HUP INT PIPE;{feed}cat <&3; kill -TERM -$$;
i=0; while [ $i -lt {patience} ] && kill -0 $$; do i=$((i+1)); sleep 0.1 || sleep 1; done; kill -KILL -$$
)>/dev/null 2>&1 &);exec 3<&-{close};
"""


def line(command: Sequence[str], *, guard: bool, stdin: bool = True) -> str:
    """What ``sh`` runs: the start mark, the watcher where ``guard``, and then the command in sh's place.

    Args:
        command: The argument list, at least one word.
        guard: End the command with its channel. Its input is framed then, see ``frame``.
        stdin: Without it a guarded command reads from /dev/null; one without guard always has the channel's input.

    Raises:
        ValueError: No command, or a NUL in it.
    """
    if not command or any("\0" in word for word in command):
        raise ValueError("a command needs at least one word, and none of them may hold a NUL")
    become = "exec " + shlex.join(command)
    if not guard:
        return _PRINT_MARK + become
    watch = _WATCH.format(
        feed=_FEED if stdin else "", close=" 5>&-" if stdin else "", patience=int(KILL_AFTER * 10)
    )
    guarded = _OWN_GROUP + _PRINT_MARK + (_OPEN_INPUT if stdin else _NO_INPUT) + watch
    return guarded.replace("\n", "") + become


def login_command(text: str) -> str:
    """The command line for a login shell of any kind that lets ``sh`` run ``text``."""
    words: list[str] = [""]
    for byte in text.encode("utf-8", "surrogateescape"):
        plain = 0x20 <= byte < 0x7F and byte not in b"\\'!"
        piece = chr(byte) if plain else f"\\0{byte:03o}"
        if len(words[-1]) + len(piece) > _WORD:
            words.append("")
        words[-1] += piece
    return f"exec sh -c '{_DECODE}' sh " + " ".join(f"'{word}'" for word in words)


def frame(data: bytes) -> bytes:
    """Input for a guarded command; ``b""`` makes the frame that ends it.

    A frame is a line with a block size and a number of blocks, then that many bytes. ``dd`` reads exactly those.
    """
    if not data:
        return b"0 0\n"
    whole = len(data) // _BLOCK * _BLOCK
    parts = b""
    if whole:
        parts = b"%d %d\n" % (_BLOCK, whole // _BLOCK) + data[:whole]
    if len(data) > whole:
        parts += b"%d 1\n" % (len(data) - whole) + data[whole:]
    return parts
