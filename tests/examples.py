"""examples: how many examples property tests try in each tier."""

from hypothesis import settings

PROFILES = {  # by the name of a profile of Hypothesis
    "tests": 10,  # the README's command
    "thorough": 25,  # .ci/run
    "mutations": 100,  # tests/faults/mutation.py
    "campaign": 1000,  # .ci/campaigns
}


def register_profiles() -> None:
    """Register the profiles and load the first one."""
    # Examples that sync files depend on the speed of the disk: no deadline.
    for name, number in PROFILES.items():
        settings.register_profile(name, deadline=None, max_examples=number)
    settings.load_profile("tests")


def at_most(number: int) -> int:
    """Return how many examples an expensive test tries: in a campaign as many as all others."""
    loaded = settings().max_examples
    return loaded if settings.get_current_profile_name() == "campaign" else min(number, loaded)
