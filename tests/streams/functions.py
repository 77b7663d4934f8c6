"""Functions of items for the tests of streams and loaders, which worker processes can import."""


def double(number):
    return number * 2


def fails_at_5(number):
    if number == 5:
        raise ValueError("five")
    return number


def fails_on_thirds(number):
    if number % 3 == 0:
        raise ValueError(f"bad {number}")
    return number
