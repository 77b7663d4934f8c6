"""Files of numbered records."""


def write(path, lines):
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def records(count):
    return [b'{"n":%d,"pad":"%s"}' % (n, b"x" * (n % 50)) for n in range(count)]


def numbers(stream):
    return [record["n"] for record in stream]
