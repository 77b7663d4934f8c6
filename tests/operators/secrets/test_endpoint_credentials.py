"""Tests of endpoint_credentials: names of options that change no result."""

from dagster_dataops.operators.secrets.endpoint_credentials import (
    is_endpoint_credential,
    is_inner_credential,
    is_operational_option,
)
from tests.each import each


@each(
    "name",
    [
        *("api_key", "apiKey", "API_KEY", "api_keys", "apikey", "X-Api-Key", "deepseek_api_key"),
        *("access_key", "aws_access_key_id", "aws_secret_access_key", "access_token", "auth_token"),
        *("Authorization", "Proxy-Authorization", "http_auth", "basic_auth", "bearer_token"),
        *("hf_token", "hfToken", "HUGGINGFACE_TOKEN", "github_token", "openai_key", "azure_key"),
        *("client_secret", "refresh_token", "session_token", "sas_token", "jwt", "credentials"),
        *("subscription_key", "Ocp-Apim-Subscription-Key", "google_credentials", "api_token"),
    ],
)
def test_a_name_of_a_credential_of_an_endpoint_is_known(name: str) -> None:
    assert is_endpoint_credential(name)


@each(
    "name",
    [
        *("", "_", "key", "keys", "token", "eos_token", "license_key", "mask_password", "cookie"),
        *("password", "passwords", "passphrase", "pwd", "zip_password", "user_password", "secret"),
        *("encryption_key", "signing_key", "private_key", "hmac_key", "secret_key", "cipher_key"),
        *("master_key", "kms_key", "aes_key", "ssh_key", "public_key", "key_id", "salt", "pepper"),
        *("seed", "nonce", "iv", "api_key_salt", "api_key_column", "signing_secret", "hash_key"),
        *("jwt_secret", "webhook_secret", "tokens", "max_tokens", "author", "apikeyboard"),
    ],
)
def test_other_names_count(name: str) -> None:
    assert not is_endpoint_credential(name)
    assert not is_operational_option(name, "a")


def test_one_word_alone_is_no_credential_inside_an_option() -> None:
    assert not any(map(is_inner_credential, ["credentials", "jwt", "password", "token"]))
    assert all(map(is_inner_credential, ["api_key", "Authorization", "x-api-key", "hf_token"]))


def test_limits_and_credentials_are_operational_but_no_switches_and_numbers() -> None:
    assert is_operational_option("request_timeout_seconds", 3)
    assert is_operational_option("api_key", None)
    assert not is_operational_option("api_key", True)
    assert not is_operational_option("api_key", 3)
    assert not is_operational_option("session_timeout", 3)
