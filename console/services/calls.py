"""What a model takes and gives, asked of Triton through a forwarded port."""

from __future__ import annotations

import http.client
import json

from console.domain.triton.call import Signature, infer_path, read_signature
from console.services.forward import LOOPBACK

_LIMIT = 1 << 20


def ask_signature(port: int, name: str, version: str, timeout: float) -> Signature:
    """Triton's metadata of a model.

    Args:
        port: Where its HTTP port is on this machine.
        name: The model.
        version: Its version; empty or "-" for Triton's choice.
        timeout: Seconds for each step.

    Raises:
        OSError: It did not answer, or not with metadata.
    """
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout)
    try:
        connection.request("GET", infer_path(name, version))
        response = connection.getresponse()
        body = response.read(_LIMIT)
        if response.status != 200:
            raise OSError(f"Triton answered {response.status}")
        found = read_signature(json.loads(body))
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"Triton's answer cannot be read: {type(error).__name__}") from error
    finally:
        connection.close()
    if found is None:
        raise OSError("Triton's answer holds no metadata of a model")
    return Signature(name, version, found.inputs, found.outputs)
