"""Operators of group ``pii`` that replace addresses and numbers of persons."""

from collections.abc import Sequence
from itertools import cycle, repeat
from typing import Any, ClassVar, Final, TypeAlias

from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.text_spans import Finder, replaced
from dagster_dataops.library.pii import account_numbers, internet_addresses, network_addresses
from dagster_dataops.library.pii.secret_keys import pii, secret_spans
from dagster_dataops.library.text_mapping import TextOperator

Replacement: TypeAlias = str | Sequence[str]

_EMAILS: Final = ("email@example.com", "firstname.lastname@example.org")
# Addresses that did not answer when the authors of datatrove chose them.
_IPS: Final = (
    "22.214.171.124",
    "126.96.36.199",
    "188.8.131.52",
    "184.108.40.206",
    "220.127.116.11",
    "18.104.22.168",
)


class Replace(TextOperator, pii):
    """Replace e-mail and IP addresses and, on request, phone, card and account numbers and keys.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    Keys are replaced first, then e-mail addresses, IP addresses, account, card and phone numbers.
    Several replacements are used in turn, from the first one in each text.

    E-mail addresses are those of all scripts and cases, without marks around them. IP addresses are
    IPv4 and IPv6, but no times, hardware addresses or code, and no versions: four numbers behind
    ``version``, ``v``, ``>=`` or ``linux-`` stay, and so do four of which the first is below 10 or
    all are below 32, unless a word such as ``server`` or ``address``, a port or a network size is
    near.

    With ``compat=True``, e-mail and IPv4 addresses are those that ``PIIFormatter`` of datatrove
    finds, which takes versions for addresses. There, the replacements go on from one document to
    the next, so that the result depends on the number of workers.

    Args:
        emails: Replace e-mail addresses.
        ips: Replace IPv4 and IPv6 addresses.
        public_ips_only: Leave private and reserved IP addresses.
        phones: Replace phone numbers with a plus or in American groups; with ``phone_region``,
            those that phonenumbers finds.
        cards: Replace numbers of payment cards, by their network, groups and check digit.
        ibans: Replace bank account numbers, by their length and check digits.
        keys: Replace the secrets that `pii.Secrets` finds.
        phone_region: Country (ISO 3166-1, such as ``DE``) whose national phone numbers are found,
            too; extra ``phone``. Without it, of national forms only American ones are found.
        compat: Whether e-mail and IP addresses are found as by datatrove.
        email_replacement: A text, or a list of texts.
        ip_replacement: A text, or a list of texts.
        phone_replacement: A text, or a list of texts.
        card_replacement: A text, or a list of texts.
        iban_replacement: A text, or a list of texts.
        key_replacement: A text, or a list of texts.
    """

    added_later = frozenset({"phone_region", "compat"})

    def __init__(
        self,
        *args: Any,
        emails: bool = True,
        ips: bool = True,
        public_ips_only: bool = True,
        phones: bool = False,
        cards: bool = False,
        ibans: bool = False,
        keys: bool = False,
        phone_region: str | None = None,
        compat: bool = False,
        email_replacement: Replacement = _EMAILS,
        ip_replacement: Replacement = _IPS,
        phone_replacement: Replacement = "<PHONE>",
        card_replacement: Replacement = "<CARD>",
        iban_replacement: Replacement = "<IBAN>",
        key_replacement: Replacement = "<KEY>",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        finders = internet_addresses if compat else network_addresses
        find_ips = finders.public_ips if public_ips_only else finders.ips
        find_phones: Finder = account_numbers.phones
        if phones and phone_region is not None:
            find_phones = account_numbers.phones_of(phone_region)
        steps: list[tuple[bool, Finder, str, Replacement]] = [
            (keys, secret_spans, "key_replacement", key_replacement),
            (emails, finders.emails, "email_replacement", email_replacement),
            (ips, find_ips, "ip_replacement", ip_replacement),
            (ibans, account_numbers.ibans, "iban_replacement", iban_replacement),
            (cards, account_numbers.cards, "card_replacement", card_replacement),
            (phones, find_phones, "phone_replacement", phone_replacement),
        ]
        self._steps = [(find, _texts(option, new)) for wanted, find, option, new in steps if wanted]

    @override
    def changed(self, value: str) -> str:
        for find, replacements in self._steps:
            value = replaced(value, find(value), cycle(replacements))
        return value


def _texts(option: str, replacement: Replacement) -> Sequence[str]:
    texts = [replacement] if isinstance(replacement, str) else list(replacement)
    if not texts:
        msg = f"{option} is an empty list; give at least one text, which may be empty"
        raise DefinitionError(msg)
    return texts


class RemoveEmails(TextOperator, pii):
    """Replace e-mail addresses, of all scripts and cases.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).

    Args:
        replacement: The text that replaces an address.
        compat: Find addresses as ``clean_email_mapper`` of Data-Juicer does: in ASCII, with small
            letters behind the ``@``.
    """

    renamed_options: ClassVar = {"repl": "replacement"}
    added_later = frozenset({"compat"})

    def __init__(
        self, *args: Any, replacement: str = "", compat: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._replacement = replacement
        self._find = internet_addresses.wide_emails if compat else network_addresses.emails

    @override
    def changed(self, value: str) -> str:
        return replaced(value, self._find(value), repeat(self._replacement))


class RemoveIPs(TextOperator, pii):
    """Replace IPv4 and IPv6 addresses, also private ones.

    Versions stay, as `pii.Replace` describes. Reads ``input_key`` (one key or several) and writes
    ``output_key`` (by default, the same keys).

    Args:
        replacement: The text that replaces an address.
        compat: Find addresses as ``clean_ip_mapper`` of Data-Juicer does: every four numbers,
            versions, too, and IPv6 addresses of eight groups.
    """

    renamed_options: ClassVar = {"repl": "replacement"}
    added_later = frozenset({"compat"})

    def __init__(
        self, *args: Any, replacement: str = "", compat: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._replacement = replacement
        self._find = internet_addresses.wide_ips if compat else network_addresses.ips

    @override
    def changed(self, value: str) -> str:
        return replaced(value, self._find(value), repeat(self._replacement))
