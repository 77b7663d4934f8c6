"""Records of web archives."""

PAGES = 12


def written(kind, url, content_type, content):
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{kind}-{url[-2:]}>",
        "WARC-Date": "2026-01-31T12:00:00Z",
        "WARC-Target-URI": url,
        "Content-Type": content_type,
        "Content-Length": len(content),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"WARC/1.1\r\n{lines}\r\n".encode() + content + b"\r\n\r\n"


def page(number):
    url = f"https://example.org/{number}"
    encoding = "latin-1" if number % 2 else "utf-8"
    kind = "text/html; charset=latin-1" if number % 2 else "text/html"
    text = f"page {number} é" * (1 + number * 40)
    http = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode() + text.encode(encoding)
    asked = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
    return [
        written("request", url, "application/http; msgtype=request", asked),
        written("response", url, "application/http; msgtype=response", http),
    ]


def byte_of(stream):
    """Return the byte at which the next record of a stream over one archive begins."""
    return stream.state_dict()["position"]["within"]["group"]
