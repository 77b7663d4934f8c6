"""Small images and sounds for tests, made without a library."""

import struct
import zlib


def png(width: int = 8, height: int = 4, color: bytes = b"\xff\0\0") -> bytes:
    """Return an image of one color."""
    rows = (b"\0" + color * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    packed = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def wave(samples: int = 80) -> bytes:
    """Return silence: 8,000 samples a second, of two bytes each."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    body = struct.pack("<4sI", b"data", 2 * samples) + bytes(2 * samples)
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(body), b"WAVE") + form + body
