"""NVML's library: loading it, starting it, and what its return codes mean.

The structures, constants and start-up are pynvml's. The calls of every tick go to the library's own functions
through ctypes with structures that are made once: pynvml's wrappers make them anew each time, and raise where a
return code will do.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from remote_scripts.call import Call
from remote_scripts.files import cut, read_text

NOT_SUPPORTED = 3
NO_PERMISSION = 4
UNINITIALIZED = 1
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
MISMATCH = 18
UNKNOWN = 999

FOR_GOOD = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, 25, 26})
"""Answers that stay the same while the driver does: 25 is another structure version, 26 a deprecated call."""
LOST = frozenset({GPU_IS_LOST, RESET_REQUIRED, 28})

LIBRARY = "libnvidia-ml.so.1"
ELSEWHERE = (
    "/usr/lib/wsl/lib/",
    "/run/opengl-driver/lib/",
    "/usr/local/nvidia/lib64/",
    "/usr/lib64-nvidia/",
    "/usr/lib/x86_64-linux-gnu/",
    "/usr/lib/aarch64-linux-gnu/",
    "/usr/lib64/",
)
"""Where distributions keep the driver's libraries when a Python of its own does not look there."""

STAND_IN = "/usr/lib/droplet-console/nvml_library.py"
"""Under another root than /: Python in the library's place, as the practice droplet has it (console/demo)."""

Function = Callable[..., int]

_REASONS = {
    UNINITIALIZED: "NVML lost its state and is being started again",
    2: "NVML does not know this figure for this GPU (Invalid Argument)",
    NOT_SUPPORTED: "the GPU does not support it",
    NO_PERMISSION: "NVML refuses it to this user (Insufficient Permissions)",
    6: "NVML has no such thing here (Not Found)",
    DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    10: "NVML timed out",
    LIBRARY_NOT_FOUND: "the NVIDIA driver is not installed: libnvidia-ml.so.1 is not there",
    FUNCTION_NOT_FOUND: "this driver's NVML does not have it",
    14: "the GPU's infoROM is corrupted",
    GPU_IS_LOST: "GPU is lost: it has fallen off the bus or is otherwise out of reach",
    RESET_REQUIRED: "GPU requires reset",
    17: "the operating system blocked the request (a container's device rules may be gone)",
    MISMATCH: "driver/library version mismatch",
    21: "NVML has no data yet",
    25: "this driver's NVML has another version of it",
    26: "this driver's NVML has dropped it",
    27: "the GPU is not ready yet",
    28: "the GPU is not there any more",
    UNKNOWN: "NVML says Unknown Error; in a container, device rules lost at a systemctl daemon-reload look like"
    " this: restart the container",
}


class NvmlError(Exception):
    """NVML cannot be used, and why.

    Attributes:
        code: NVML's return code, or None where not even its library could be loaded.
        elsewhere: True where the library cannot be used from this Python: nvidia-smi may still work. False where
            NVML itself refuses, which it would to nvidia-smi too.
    """

    def __init__(self, reason: str, code: int | None, *, elsewhere: bool) -> None:
        super().__init__(reason)
        self.code = code
        self.elsewhere = elsewhere


class Nvml:
    """NVML, loaded and started.

    Attributes:
        bindings: the pynvml module: structures and constants.
    """

    def __init__(self, call: Call) -> None:
        """Loads the library and starts it: 100 ms warm; seconds per GPU where no persistence daemon runs.

        Args:
            call: the droplet's files: under another root than / a stand-in may take the library's place.

        Raises:
            NvmlError: it cannot be used.
        """
        self.bindings = _import_bindings()
        self._library = _stand_in(self.bindings, call) or _load(self.bindings, call)
        self._functions: dict[str, Function | None] = {}
        self.start()

    def start(self) -> None:
        """Starts NVML, anew where it was shut down.

        Raises:
            NvmlError: it does not start.
        """
        start = self.function("nvmlInitWithFlags", "nvmlInit_v2")
        if start is None:
            raise NvmlError("this driver's NVML has no nvmlInit_v2", FUNCTION_NOT_FOUND, elsewhere=True)
        code = start(0)
        if code:
            raise NvmlError(self.reason(code), code, elsewhere=False)

    def stop(self) -> None:
        """Shuts NVML down; the library stays loaded."""
        shut = self.function("nvmlShutdown")
        if shut is not None:
            shut()

    def function(self, *names: str) -> Function | None:
        """The first of these functions that the library has; None where it has none of them."""
        for name in names:
            if name not in self._functions:
                self._functions[name] = getattr(self._library, name, None)
            found = self._functions[name]
            if found is not None:
                return found
        return None

    def reason(self, code: int) -> str:
        """What a return code means, in words that follow "n/a, because"."""
        known = _REASONS.get(code)
        if known is not None:
            return known
        text = self.function("nvmlErrorString")
        if text is None:
            return f"NVML error {code}"
        text.restype = ctypes.c_char_p  # type: ignore[attr-defined]
        said: Any = text(code)
        return cut(f"NVML error {code}: {said.decode('utf-8', 'replace')}") if said else f"NVML error {code}"

    def text(self, name: str, *arguments: Any, size: int = 96) -> str | int:
        """A string that a function writes into a buffer as its last two arguments, or its return code."""
        function = self.function(name)
        if function is None:
            return FUNCTION_NOT_FOUND
        buffer = ctypes.create_string_buffer(size)
        code = function(*arguments, buffer, size)
        return code if code else cut(buffer.value.decode("utf-8", "replace"))

    def number(self, name: str, *arguments: Any) -> tuple[int, int]:
        """An unsigned int that a function writes through its last argument: return code and value."""
        function = self.function(name)
        if function is None:
            return FUNCTION_NOT_FOUND, 0
        value = ctypes.c_uint()
        return function(*arguments, ctypes.byref(value)), value.value


def library_version(maps: str = "/proc/self/maps") -> str | None:
    """The version of the NVML library that this process has loaded, from the file it is mapped from.

    " (replaced on disk)" is added where an upgrade has put another file in its place since.
    """
    try:
        found = re.search(r"/[^\n]*libnvidia-ml\.so\.(\d[\d.]*)( \(deleted\))?", read_text(maps, 1 << 22))
    except OSError:
        return None
    if found is None or found.group(1) == "1":
        return None
    return found.group(1) + (" (replaced on disk)" if found.group(2) else "")


def kernel_version(path: str) -> str | None:
    """The version of the loaded kernel module, from /proc/driver/nvidia/version; None where none is loaded."""
    try:
        first = read_text(path, 4096).partition("\n")[0]
    except OSError:
        return None
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)*)\s", first)
    return found.group(1) if found else None


def _import_bindings() -> Any:
    _compile_bindings()
    try:
        import pynvml
    except Exception as error:  # a damaged file may raise anything, and nvidia-smi can stand in
        raise NvmlError(cut(f"pynvml cannot be imported: {error}"), None, elsewhere=True) from error
    return pynvml


def _compile_bindings() -> None:
    """Compiles pynvml in a process of its own, once: it takes 15 MB that this one would keep for life."""
    if "pynvml" in sys.modules or sys.dont_write_bytecode:
        return
    from importlib.util import cache_from_source, find_spec

    try:
        found = find_spec("pynvml")
        if found is None or not found.origin or os.path.exists(cache_from_source(found.origin)):  # noqa: PTH110
            return
        import subprocess

        code = "import py_compile, sys; py_compile.compile(sys.argv[1], doraise=True)"
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, found.origin],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        # Only memory is at stake: the import that follows compiles it here.
        return


def _stand_in(bindings: Any, call: Call) -> Any:
    """What the root's own file has in the library's place: an object with NVML's functions as methods.

    Never on a droplet, whose root is /. Made by the file's ``library(bindings, root)``.
    """
    path = str(call.resolve(STAND_IN))
    if str(call.root) == "/" or not os.path.exists(path):  # noqa: PTH110 - as the rest here
        return None
    names: dict[str, Any] = {"__name__": "nvml_library"}
    try:
        exec(compile(read_text(path, 1 << 20), path, "exec", dont_inherit=True), names)  # noqa: S102
        return names["library"](bindings, str(call.root))
    except Exception as error:
        raise NvmlError(cut(f"{path} cannot stand in for NVML: {error}"), None, elsewhere=False) from error


def _load(bindings: Any, call: Call) -> Any:
    """The library, by the loader's own search and then where distributions hide it.

    Under another root than / it is that root's own: this machine's GPUs are not that droplet's.
    """
    if bindings.nvmlLib is None:
        refusal: str | None = None
        own = [f"{call.resolve(folder)}/" for folder in ELSEWHERE]
        for folder in ("", *ELSEWHERE) if str(call.root) == "/" else own:
            try:
                bindings.nvmlLib = ctypes.CDLL(folder + LIBRARY)
                break
            except OSError as error:
                if "No such file" not in str(error):
                    refusal = str(error)
        else:
            if refusal is None:
                raise NvmlError(_REASONS[LIBRARY_NOT_FOUND], LIBRARY_NOT_FOUND, elsewhere=True)
            raise NvmlError(cut(f"Python cannot load NVML: {refusal}"), None, elsewhere=True)
    return bindings.nvmlLib
