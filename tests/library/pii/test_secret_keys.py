import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

KEY = "AKIA" + "A1" * 8
BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOi.eyJzdWIiOi.abc-_"


@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        (KEY, "AWS Access Key"),
        ("ghp_" + "a" * 36, "GitHub Token"),
        ("glpat-" + "a" * 20, "GitLab Token"),
        ("AIza" + "a" * 35, "Google API Key"),
        ("xoxb-1234567890-abc", "Slack Token"),
        ("sk_live_" + "a" * 24, "Stripe Access Key"),
        (JWT, "JSON Web Token"),
        (BLOCK, "Private Key"),
    ],
)
def test_a_secret_is_found(secret, kind):
    operator = data.pii.Secrets(mode="both")

    assert operator.forward({"text": f"a {secret}, b"}) == {
        "text": "a <SECRET>, b",
        "secrets": [kind],
    }


def test_secrets_are_masked_or_reported():
    text = f"{KEY} {KEY} {BLOCK}"

    assert data.pii.Secrets().forward({"text": text}) == {"text": "<SECRET> <SECRET> <SECRET>"}
    assert data.pii.Secrets(mode="tag").forward({"text": text}) == {
        "text": text,
        "secrets": ["AWS Access Key", "Private Key"],
    }
    assert data.pii.Secrets(mode="tag").forward({"text": "none"})["secrets"] == []
    with pytest.raises(DefinitionError, match="mask"):
        data.pii.Secrets(mode="drop")


def test_words_are_no_secrets():
    for text in ("AKIAlike", "eyJ.eyJ.a", "ghp_short", "a PRIVATE KEY", "task_live_" + "a" * 30):
        assert data.pii.Secrets().forward({"text": text}) == {"text": text}


def test_a_private_key_without_an_end_is_masked_up_to_its_first_line():
    begin = BLOCK.split("\n", maxsplit=1)[0]

    assert data.pii.Secrets().forward({"text": f"{begin}\nMII"}) == {"text": "<SECRET>\nMII"}
