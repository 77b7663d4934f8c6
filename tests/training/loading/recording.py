"""Services that write down how they are called. Loaders copy them, so the list is here."""

from dagster_dataops import CheckpointableReadingServiceInterface, ReadingServiceInterface

CALLS = []


class Recording(ReadingServiceInterface):
    """Write down each call; fail in the methods that are named."""

    def __init__(self, name, *, fails=(), resets=True):
        self.name, self.fails, self.resets = name, fails, resets

    def note(self, method, more=""):
        CALLS.append(f"{self.name}.{method}{more}")
        if method in self.fails:
            raise OSError(f"{method} of {self.name}")

    def initialize(self, datapipe):
        self.note("initialize")
        return datapipe

    def initialize_iteration(self, seed_generator, iter_reset_fn=None):
        given = None if iter_reset_fn is None else iter_reset_fn.__name__
        self.note("initialize_iteration", f"({given})")
        if not self.resets:
            return None

        def reset(stream):
            self.note("reset")
            return stream

        reset.__name__ = f"reset of {self.name}"
        return reset

    def finalize_iteration(self):
        self.note("finalize_iteration")

    def finalize(self):
        self.note("finalize")


class Remembering(Recording, CheckpointableReadingServiceInterface):
    """A service with a state: the number of epochs."""

    epochs = 0

    def initialize_iteration(self, seed_generator, iter_reset_fn=None):
        self.epochs += 1
        return super().initialize_iteration(seed_generator, iter_reset_fn)

    def checkpoint(self):
        self.note("checkpoint")
        return b"epochs\n%d" % self.epochs

    def restore(self, datapipe, serialized_state):
        self.note("restore", f"({serialized_state.decode()!r})")
        self.epochs = int(serialized_state.split()[1])
        return datapipe
