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


MORE = {
    "OpenAI Token": "sk-proj-" + "aB3_" * 20,
    "Anthropic API Key": "sk-ant-api03-" + "aB3_" * 20,
    "Hugging Face Token": "hf_" + "aBcD" * 8 + "xy",
    "NPM tokens": "npm_" + "aB3d" * 9,
    "PyPI Token": "pypi-AgEIcHlwaS5vcmc" + "aB3d" * 20,
    "SendGrid API Key": "SG." + "a" * 22 + "." + "b" * 43,
    "Twilio API Key": "AC" + "0a" * 16,
    "Mailchimp Access Key": "0a" * 16 + "-us12",
    "Telegram Bot Token": "123456789:AA" + "b" * 33,
    "DigitalOcean Token": "dop_v1_" + "0a" * 32,
}


@pytest.mark.parametrize("kind", MORE)
def test_keys_of_services_are_found(kind):
    found = data.pii.Secrets(mode="both").forward({"text": f"key: {MORE[kind]};"})

    assert found == {"text": "key: <SECRET>;", "secrets": [kind]}


def test_old_keys_of_openai_are_found():
    for key in ("sk-" + "a" * 20 + "T3BlbkFJ" + "b" * 20, "sk-" + "aB3d" * 12):
        assert data.pii.Secrets().forward({"text": key}) == {"text": "<SECRET>"}


def test_only_the_password_of_an_assignment_goes():
    mask = data.pii.Secrets()
    for text, masked in (
        ("password = 'hunter2!x'", "password = '<SECRET>'"),
        ('"api_key": "a1b2c3d4e5"', '"api_key": "<SECRET>"'),
        ("postgres://bob:pa55word@db/x", "postgres://bob:<SECRET>@db/x"),
        (f"aws_secret_access_key = {'a1B/' * 10}", "aws_secret_access_key = <SECRET>"),
        (f"AccountKey={'a' * 86}==;", "AccountKey=<SECRET>;"),
    ):
        assert mask.forward({"text": text}) == {"text": masked}


def test_placeholders_and_names_are_no_secrets():
    for text in (
        "password = 'your-password-1'",
        "password = 'changeme1'",
        "password = '${DB_PASS}'",
        "password = get_password()",
        "password: 'a word'",
        "secret = 'letters'",
        "sk-learn and task-sk-1234",
        "hf_hub_download",
        "npm_config_registry",
        "http://localhost:8080/a@b",
        "SK" + "1" * 32,
    ):
        assert data.pii.Secrets().forward({"text": text}) == {"text": text}


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
