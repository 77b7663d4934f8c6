"""Write OFRecord files for tests, by the rules of protobuf alone."""

import struct


def varint(number):
    number &= (1 << 64) - 1
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


PACKED = {
    "float": lambda values: struct.pack(f"<{len(values)}f", *values),
    "double": lambda values: struct.pack(f"<{len(values)}d", *values),
    "int32": lambda values: b"".join(map(varint, values)),
    "int64": lambda values: b"".join(map(varint, values)),
}
NUMBERS = {"bytes": 1, "float": 2, "double": 3, "int32": 4, "int64": 5}


def payload(**features):
    """Return the bytes of a record; a feature is a pair (kind, values)."""
    made = b""
    for name, (kind, values) in features.items():
        if kind == "bytes":
            listed = b"".join(field(1, value) for value in values)
        else:
            listed = field(1, PACKED[kind](values))
        made += field(1, field(1, name.encode()) + field(2, field(NUMBERS[kind], listed)))
    return made


def frame(data):
    return struct.pack("<q", len(data)) + data


def written(path, payloads):
    """Write the records of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(frame, payloads)))
    return path
