import random
import time

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from tests.each import each
from tests.library.pii.replaced_texts import marked

MARK_EMAILS = data.pii.RemoveEmails(replacement="_")
MARK_IPS = data.pii.RemoveIPs(replacement="_")
MARK_PUBLIC_IPS = data.pii.Replace(emails=False, ip_replacement="_")


EMAILS = {
    "John.Doe@Example.COM": ["John.Doe@Example.COM"],
    "write to <JOHN@X.ORG>, or a_b+c@d-e.co.uk.": ["JOHN@X.ORG", "a_b+c@d-e.co.uk"],
    "müller@bücher.de und иван@почта.рф": ["müller@bücher.de", "иван@почта.рф"],
    "用户邮箱zhang.san@example.cn，谢谢": ["zhang.san@example.cn"],
    "发到zhang@example.com谢谢": ["zhang@example.com"],
    "用户@例子.广告": ["用户@例子.广告"],
    "メールはtaro@example.jpまで": ["taro@example.jp"],
    "x@xn--bcher-kva.xn--p1ai": ["x@xn--bcher-kva.xn--p1ai"],
    "E<lt>tchrist@perl.comE<gt>": ["tchrist@perl.com"],
    "'ann@x.org' \"bob@x.org\" *cat@x.org* `dan@x.org`": [
        "ann@x.org",
        "bob@x.org",
        "cat@x.org",
        "dan@x.org",
    ],
    "o'brien@x.ie; mailto:a@b.co?subject=x": ["o'brien@x.ie", "a@b.co"],
    "user=john@x.org&b": ["john@x.org"],
    "me@[192.0.2.1] you@[IPv6:2001:db8::1]": ["me@[192.0.2.1]", "you@[IPv6:2001:db8::1]"],
    "a..b@c.de .d@e.fr f.@g.hi": ["b@c.de", "d@e.fr"],
    "a@b": [],
    "pkg@1.2.3 and y = A@B.T, A@B.dot(x)": [],
    "@decorator.name": [],
    "a@@b.co x@-y.co": [],
    "see a@b.co\\n": ["a@b.co"],
}


@each("case", EMAILS.items())
def test_email_addresses_are_found_whole_and_alone(case):
    text, addresses = case

    assert MARK_EMAILS.forward({"text": text})["text"] == marked(text, addresses)


ADDRESSES = {
    "Server 8.8.8.8 answers": ["8.8.8.8"],
    "8.8.8.8 and 1.1.1.1": ["8.8.8.8", "1.1.1.1"],
    "IP是114.114.114.114。": ["114.114.114.114"],
    "from 93.184.216.34:80, 5.6.7.8/24": ["93.184.216.34", "5.6.7.8"],
    "ping 5.6.7.8": ["5.6.7.8"],
    "http://5.6.7.8/x": ["5.6.7.8"],
    "2606:4700:4700::1111 and [2001:4860:4860:0:0:0:0:8888]:53": [
        "2606:4700:4700::1111",
        "2001:4860:4860:0:0:0:0:8888",
    ],
    "fe80::1ff:fe23:4567:890a%eth0": ["fe80::1ff:fe23:4567:890a%eth0"],
    "::ffff:93.184.216.34": ["::ffff:93.184.216.34"],
}
NO_ADDRESSES = [
    "kernel 2.6.16.60 and 2.6.35.4",
    "v1.2.3.4",
    "version 10.0.0.1 of the tool",
    "Version: 93.184.216.34",
    "foo==12.1.2.3, bar>=93.1.2.3, ^10.2.3.4",
    "linux-2.6.32.11.tar",
    "2.6.16.60-0.21-smp",
    "install 93.2.1.0 or later",
    "1.2.3.4.5",
    "Gecko rv:102.0.1.2, Chrome/91.0.44.124, AssemblyVersion 93.2.1.0",
    "// 23.3.3.1 constructors, [23.3.1.3]",
    "Clauses 21.1.3.1 and 21.1.3.2",
    "12.30.45",
    "256.300.1.2",
    "版本10.2.3.4",
    "at 12:30:45, 2024-01-01T12:30:45",
    "00:1a:2b:3c:4d:5e 00:11:22:33:44:55:66:77",
    "std::dead::beef, ::add(), a[1::2], x[::2]",
    "Foo::Bar abc::def::",
    "2024.01.02.03",
    "1:2:3",
    "Firefox 115.0.3.1",
    '{"version": "101.22.33.44"}',
    "const VERSION = '12.50.3.44'",
    '__version__ = "12.50.3.44"',
]


@each("case", ADDRESSES.items())
def test_ip_addresses_are_found(case):
    text, addresses = case

    assert MARK_IPS.forward({"text": text})["text"] == marked(text, addresses)


@each("text", NO_ADDRESSES)
def test_versions_times_and_code_are_no_ip_addresses(text):
    assert data.pii.Replace().forward({"text": text})["text"] == text
    assert data.pii.RemoveIPs().forward({"text": text})["text"] == text


def test_private_addresses_and_those_outside_of_the_assigned_part_are_not_public():
    text = "10.0.0.1 93.184.216.34 fe80::1:2:3 f00::ba4, 2606:4700:4700::1111"

    public = ["93.184.216.34", "2606:4700:4700::1111"]
    assert MARK_PUBLIC_IPS.forward({"text": text})["text"] == marked(text, public)


@pytest.mark.cpu_timeout(20)
@pytest.mark.slow
def test_long_texts_take_linear_time():
    chance = random.Random(0)
    for part in ("a", "a.", "@", "a@", "@a.", "1.2.3.4 ", ":", "1:", "::1 ", "é@ü.", "用", "-@-"):
        text = part * (60_000 // len(part))
        start = time.process_time()
        MARK_EMAILS.forward({"text": text}), MARK_IPS.forward({"text": text})
        assert time.process_time() - start < 3, part
    text = "".join(chance.choices("a1.@:-用é ", k=50_000))
    assert len(MARK_EMAILS.forward({"text": text})["text"]) <= len(text)


def test_national_phone_numbers_are_found_with_a_region():
    pytest.importorskip("phonenumbers")
    texts = {
        "DE": "Tel. 030 901820, mobil 0171 1234567",
        "FR": "Appelez le 01 42 68 53 00.",
        "JP": "電話は03-3580-3311です",
        "GB": "Call 020 7930 4832",
    }
    for region, text in texts.items():
        operator = data.pii.Replace(phones=True, phone_region=region)
        assert "<PHONE>" in operator.forward({"text": text})["text"], text
    with pytest.raises(DefinitionError, match="phone_region"):
        data.pii.Replace(phones=True, phone_region="XX")


def test_numbers_of_tables_are_no_cards():
    replace = data.pii.Replace(cards=True)
    tables = ("4242 4242 4242 4242 5261", "5555555555555555", "7F21 4242 4242 4242 4242")
    for text in (
        *tables,
        "2 3 4 5 6 7 8 9 1 2 3 4 5 1",
        "4 11 111 1111111 111",
        "525C 5281 5282 5281 5293 5182",
    ):
        assert replace.forward({"text": text})["text"] == text
    for text in ("4111 1111 1111 1111", "3782-822463-10005", "5555555555554444"):
        assert replace.forward({"text": text})["text"] == "<CARD>"
