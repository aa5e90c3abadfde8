"""One NVML call a figure, made once and asked at every tick.

A call keeps its structures, so a tick allocates nothing but the figures themselves. A call that NVML answers with
"not supported" is never made again in this session; any other failure is tried again at the next tick.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from remote_scripts.gpu.nvml import FOR_GOOD, FUNCTION_NOT_FOUND, LOST, UNINITIALIZED, Function, Nvml

Figures = dict[str, Any]
Reasons = dict[str, str]
"""Key of a figure to why it is not to be had."""


class Query:
    """A call and what becomes of its answer.

    Attributes:
        keys: the figures it gives, for the reason where it gives none.
        store: takes the figures into a dict, and a reason for each that makes no sense into another.
        otherwise: the call to make in its place where the driver does not know it.
    """

    __slots__ = ("_arguments", "_dead", "_failed", "_function", "keys", "otherwise", "store")

    def __init__(
        self,
        keys: tuple[str, ...],
        function: Function | None,
        arguments: tuple[Any, ...],
        store: Callable[[Figures, Reasons], None],
        otherwise: Query | None = None,
    ) -> None:
        self.keys = keys
        self.store = store
        self.otherwise = otherwise
        self._function = function
        self._arguments = arguments
        self._dead = False
        self._failed = False

    def ask(self, nvml: Nvml, figures: Figures, reasons: Reasons) -> int:
        """Makes the call. Returns NVML's code where the whole GPU is concerned by it, 0 otherwise."""
        if self._dead:
            return 0 if self.otherwise is None else self.otherwise.ask(nvml, figures, reasons)
        code = FUNCTION_NOT_FOUND if self._function is None else self._function(*self._arguments)
        if code == 0:
            if self._failed:
                self._failed = False
                for key in self.keys:
                    reasons.pop(key, None)
            self.store(figures, reasons)
            return 0
        if code in LOST or code == UNINITIALIZED:
            return code
        if code in FOR_GOOD:
            self._dead = True
            if self.otherwise is not None:
                return self.otherwise.ask(nvml, figures, reasons)
        self._failed = True
        reason = nvml.reason(code)
        for key in self.keys:
            reasons[key] = reason
        return 0


def ask_all(nvml: Nvml, queries: Sequence[Query], figures: Figures, reasons: Reasons) -> int:
    """Asks each in turn; stops at the first answer that concerns the whole GPU and returns its code."""
    for query in queries:
        code = query.ask(nvml, figures, reasons)
        if code:
            return code
    return 0


class Fields:
    """The store of one nvmlDeviceGetFieldValues call: several figures for the price of one call.

    Each value carries a return code of its own.
    """

    __slots__ = ("_convert", "_nvml", "_values", "array", "count")

    def __init__(self, nvml: Nvml, fields: Sequence[tuple[int, str, int]]) -> None:
        """Prepares the array.

        Args:
            nvml: the library.
            fields: field id, key of the figure, NVML units in one of the figure's.
        """
        self._nvml = nvml
        self.count = len(fields)
        self.array = (nvml.bindings.c_nvmlFieldValue_t * len(fields))()
        self._convert = [(key, divisor) for _, key, divisor in fields]
        self._values = [self.array[index] for index in range(len(fields))]
        for value, (field, _, _) in zip(self._values, fields, strict=True):
            value.fieldId = field

    def store(self, figures: Figures, reasons: Reasons) -> None:
        """Takes the figures whose code is 0, and the reason of each other."""
        for value, (key, divisor) in zip(self._values, self._convert, strict=True):
            code = value.nvmlReturn
            if code:
                reasons[key] = self._nvml.reason(code)
                continue
            number = field_number(value)
            if number is None:
                reasons[key] = f"NVML gives a value of an unknown type ({value.valueType})"
                continue
            if key in reasons:
                del reasons[key]
            figures[key] = number if divisor == 1 else number / divisor


_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""By NVML_VALUE_TYPE_*, 0 to 6."""


def field_number(value: Any) -> float | None:
    """The number in an nvmlFieldValue_t, by its own type; None for a type that did not exist in 2026."""
    kind = value.valueType
    return getattr(value.value, _MEMBERS[kind]) if 0 <= kind < len(_MEMBERS) else None


def uint_query(
    nvml: Nvml,
    names: tuple[str, ...],
    arguments: tuple[Any, ...],
    key: str,
    divisor: int = 1,
    otherwise: Query | None = None,
) -> Query:
    """A call that writes one unsigned int through its last argument, ``divisor`` to one of the figure's units."""
    value = ctypes.c_uint()

    def store(figures: Figures, _: Reasons) -> None:
        figures[key] = value.value if divisor == 1 else value.value / divisor

    return Query((key,), nvml.function(*names), (*arguments, ctypes.byref(value)), store, otherwise)


def ulonglong_query(nvml: Nvml, names: tuple[str, ...], arguments: tuple[Any, ...], key: str) -> Query:
    """A call that writes one unsigned long long through its last argument."""
    value = ctypes.c_ulonglong()

    def store(figures: Figures, _: Reasons) -> None:
        figures[key] = value.value

    return Query((key,), nvml.function(*names), (*arguments, ctypes.byref(value)), store)
