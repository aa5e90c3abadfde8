"""All GPUs by NVML: found once, followed through loss, return and MIG changes."""

from __future__ import annotations

import ctypes

from remote_scripts.call import Call
from remote_scripts.files import name as as_key
from remote_scripts.gpu.mig import MigDevice, mig_handles, mig_mode
from remote_scripts.gpu.nvml import LOST, UNINITIALIZED, Nvml, NvmlError, kernel_version
from remote_scripts.gpu.nvml_device import Device
from remote_scripts.gpu.nvml_memory import KEYS as MEMORY_KEYS
from remote_scripts.gpu.nvml_memory import SHARED
from remote_scripts.gpu.nvml_processes import Held, ProcessLists
from remote_scripts.gpu.nvml_query import Figures, Reasons
from remote_scripts.reading import MAX_GPUS, Reading
from remote_scripts.system.host import read_memory

RESOLVE_EVERY = 5.0
"""Seconds between two looks for a lost GPU by its UUID."""
RESTART_AFTER = 60.0
"""Seconds after which NVML is started anew for a GPU that stays lost, doubled each time up to the next."""
RESTART_MOST = 900.0


class Lost:
    """A GPU that NVML knows and cannot reach."""

    __slots__ = ("identity", "reason", "state", "uuid")

    def __init__(self, uuid: str, identity: Figures, state: str, reason: str) -> None:
        self.uuid = uuid
        self.identity = identity
        self.state = state
        self.reason = reason


class NvmlSource:
    """Reads all GPUs by NVML. Used from one thread."""

    def __init__(self, call: Call, *, gpm: bool) -> None:
        """Loads and starts NVML and finds the GPUs.

        Raises:
            NvmlError: NVML cannot be used.
        """
        self._call = call
        self._gpm = gpm
        self._nvml = Nvml(call)
        self._processes = ProcessLists(self._nvml)
        self._devices: list[Device | Lost] = []
        self._mig: dict[str, list[MigDevice]] = {}
        self._count = 0
        self._next_look = 0.0
        self._restart_at: float | None = None
        self._restart_after = RESTART_AFTER
        self._driver = self._read_driver()
        self._find()

    def read(self, now: float, slow: bool) -> Reading:
        """One tick.

        Args:
            now: a monotonic clock, seconds.
            slow: read what changes slowly, and the process lists, too.

        Raises:
            NvmlError: NVML lost its state and did not start again.
        """
        if self._has_lost():
            self._look_for_lost(now)
        else:
            self._restart_at, self._restart_after = None, RESTART_AFTER
        if slow:
            self._look_for_new()
        for again in (False, True):
            reading = Reading(self._driver)
            if self._read_devices(reading, now, slow):
                return reading
            if not again:
                self._restart()
        raise NvmlError(self._nvml.reason(UNINITIALIZED), UNINITIALIZED, elsewhere=False)

    def processes_again(self, uuid: str) -> Held | str:
        """The process list of one GPU or MIG device, asked for anew."""
        for device in (*self._devices, *(mig for devices in self._mig.values() for mig in devices)):
            if device.uuid == uuid and not isinstance(device, Lost):
                return self._processes.read(device.handle)
        return []

    def close(self) -> None:
        """Gives everything back and shuts NVML down."""
        self._release()
        self._nvml.stop()

    def _read_driver(self) -> Figures:
        driver: Figures = {"source": "nvml"}
        version = self._nvml.text("nvmlSystemGetDriverVersion")
        if isinstance(version, str):
            driver["version"] = version
        code, cuda = self._nvml.number("nvmlSystemGetCudaDriverVersion_v2")
        if not code:
            driver["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
        kernel = kernel_version(str(self._call.resolve("/proc/driver/nvidia/version")))
        if kernel is not None:
            driver["kernel_version"] = kernel
        return driver

    def _find(self) -> None:
        """Finds every GPU by index; one that cannot be reached is listed as lost, not left out."""
        code, self._count = self._nvml.number("nvmlDeviceGetCount_v2")
        if code:
            raise NvmlError(f"NVML cannot count the GPUs: {self._nvml.reason(code)}", code, elsewhere=False)
        self._devices = [self._open(index) for index in range(min(self._count, MAX_GPUS))]
        self._mig = {}
        for device in self._devices:
            if isinstance(device, Device):
                self._find_mig(device)

    def _open(self, index: int) -> Device | Lost:
        handle = self._nvml.bindings.c_nvmlDevice_t()
        get = self._nvml.function("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
        code = 13 if get is None else get(index, ctypes.byref(handle))
        uuid = code if code else self._nvml.text("nvmlDeviceGetUUID", handle)
        if isinstance(uuid, int):
            state = "lost" if uuid in LOST else "error"
            return Lost(f"index-{index}", {"index": index}, state, self._nvml.reason(uuid))
        return Device(self._nvml, handle, as_key(uuid) or f"index-{index}", index, gpm=self._gpm)

    def _find_mig(self, device: Device) -> None:
        """The MIG devices of a GPU as they are now; those that stayed keep their samples."""
        known = {mig.uuid: mig for mig in self._mig.pop(device.uuid, [])}
        if device.mig:
            found = []
            for index, uuid, handle in mig_handles(self._nvml, device.handle):
                mig = known.pop(uuid, None)
                found.append(
                    mig or MigDevice(self._nvml, handle, uuid, device.uuid, device.handle, index, gpm=self._gpm)
                )
            self._mig[device.uuid] = found
        for gone in known.values():
            gone.close()

    def _has_lost(self) -> bool:
        return any(isinstance(device, Lost) for device in self._devices)

    def _look_for_new(self) -> None:
        """A GPU more or less, or another MIG layout, since the last look."""
        code, count = self._nvml.number("nvmlDeviceGetCount_v2")
        # A lost GPU may no longer be counted: it stays listed until it is back or NVML is started anew.
        if not code and count != self._count and not self._has_lost():
            self._release()
            self._find()
            return
        for place, device in enumerate(self._devices):
            if not isinstance(device, Device):
                continue
            if mig_mode(self._nvml, device.handle) != device.mig:
                # What the GPU answers at all depends on the mode.
                device.close()
                self._devices[place] = device = Device(
                    self._nvml, device.handle, device.uuid, device.index, gpm=self._gpm
                )
            if device.mig or device.uuid in self._mig:
                self._find_mig(device)

    def _look_for_lost(self, now: float) -> None:
        if now < self._next_look:
            return
        self._next_look = now + RESOLVE_EVERY
        if self._restart_at is None:
            self._restart_at = now + self._restart_after
        if now >= self._restart_at:
            self._restart_after = min(self._restart_after * 2, RESTART_MOST)
            self._restart_at = now + self._restart_after
            self._restart()
            return
        for place, device in enumerate(self._devices):
            if isinstance(device, Lost):
                self._devices[place] = self._resolve(device)

    def _resolve(self, lost: Lost) -> Device | Lost:
        """The device again where it answers by its UUID (its index may be another's now), else lost as before."""
        if lost.uuid.startswith("index-"):
            return self._open(lost.identity["index"])
        handle = self._nvml.bindings.c_nvmlDevice_t()
        get = self._nvml.function("nvmlDeviceGetHandleByUUID")
        code = 13 if get is None else get(lost.uuid.encode(), ctypes.byref(handle))
        if code:
            return lost
        code, index = self._nvml.number("nvmlDeviceGetIndex", handle)
        device = Device(self._nvml, handle, lost.uuid, lost.identity["index"] if code else index, gpm=self._gpm)
        _, code = device.read(slow=False)
        if code:
            device.close()
            return lost
        self._find_mig(device)
        return device

    def _restart(self) -> None:
        """Starts NVML anew: its picture of the GPUs is made at its start."""
        lost = {device.uuid: device for device in self._devices if isinstance(device, Lost)}
        self._release()
        self._nvml.stop()
        self._nvml.start()
        self._find()
        for place, device in enumerate(self._devices):
            if isinstance(device, Lost):
                # Without a handle there is no UUID: go by what stood at this index before.
                for before in lost.values():
                    if before.identity["index"] == device.identity["index"]:
                        self._devices[place] = before

    def _read_devices(self, reading: Reading, now: float, slow: bool) -> bool:
        """Reads every GPU; False where NVML lost its state."""
        for place, device in enumerate(self._devices):
            if isinstance(device, Device):
                figures, code = device.read(slow=slow)
                if code == UNINITIALIZED:
                    return False
                if code:
                    device.close()
                    self._close_mig(device.uuid)
                    self._devices[place] = device = Lost(
                        device.uuid, device.identity, "lost", self._nvml.reason(code)
                    )
                    self._next_look = now + RESOLVE_EVERY
            if isinstance(device, Lost):
                self._add(reading, device.uuid, {**device.identity, "state": device.state, "reason": device.reason})
                reading.reasons[device.uuid] = {"": device.reason}
                continue
            if device.shared_memory:
                self._share(figures, device.reasons)
            self._add(reading, device.uuid, figures)
            reading.reasons[device.uuid] = device.reasons
            if device.gpm is None or device.gpm.refused is not None:
                reading.without_gpm.add(device.uuid)
            if slow:
                # With MIG on, the processes stand with the MIG devices.
                reading.held[device.uuid] = [] if device.mig else self._processes.read(device.handle)
            for mig in self._mig.get(device.uuid, ()):
                self._read_mig(reading, mig, slow)
        return True

    def _read_mig(self, reading: Reading, mig: MigDevice, slow: bool) -> None:
        figures, code = mig.read()
        if code:
            reason = self._nvml.reason(code)
            figures = {**mig.identity, "state": "lost", "reason": reason}
            reading.reasons[mig.uuid] = {"": reason}
        else:
            reading.reasons[mig.uuid] = mig.reasons
            if mig.gpm is None or mig.gpm.refused is not None:
                reading.without_gpm.add(mig.uuid)
            if mig.instance is not None:
                reading.instances[mig.uuid] = (mig.parent, str(mig.instance))
            if slow:
                reading.held[mig.uuid] = self._processes.read(mig.handle)
        self._add(reading, mig.uuid, figures)

    def _add(self, reading: Reading, uuid: str, figures: Figures) -> None:
        if len(reading.gpus) < MAX_GPUS:
            reading.gpus[uuid] = figures
        else:
            reading.left_out += 1

    def _share(self, figures: Figures, reasons: Reasons) -> None:
        """The host's memory in place of the GPU's own."""
        try:
            memory = read_memory(str(self._call.resolve("/proc/meminfo")))
        except (OSError, ValueError, KeyError):
            return
        total, available = memory["total"], memory["available"]
        figures.update(memory_total=total, memory_used=total - available, memory_free=available, memory_shared=True)
        for key in MEMORY_KEYS:
            reasons.pop(key, None)
        reasons["memory_reserved"] = SHARED

    def _close_mig(self, uuid: str) -> None:
        for mig in self._mig.pop(uuid, ()):
            mig.close()

    def _release(self) -> None:
        for device in self._devices:
            if isinstance(device, Device):
                device.close()
        for uuid in list(self._mig):
            self._close_mig(uuid)
        self._devices = []
