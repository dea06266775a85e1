"""A picture as the bytes of a PNG file, written plainly: no filters, one chunk of pixels."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOUR = 0, 2
"""Kinds of pixels: one value, or red, green and blue."""


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Height × width × 1 (grey) or 3 (colour) values as a PNG file."""
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, GREY if channels == 1 else COLOUR, 0, 0, 0)
    rows = np.pad(pixels.reshape(height, width * channels), ((0, 0), (1, 0)))  # each row begins with its filter: none
    return SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def link(pixels: NDArray[Any], largest: float) -> str:
    """An image as an address that holds it, for SVG; of other numbers of channels than 1 and 3 their mean.

    Args:
        pixels: height × width × channels.
        largest: what full brightness is.
    """
    shown = pixels if pixels.shape[2] in (1, 3) else pixels.mean(2, keepdims=True)
    bright = np.clip(shown * (255.0 / largest), 0, 255).round().astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(bright)).decode()
