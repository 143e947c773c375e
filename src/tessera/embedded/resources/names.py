"""Which words may be a name, a label, a port or a key, and Kubernetes' sentence for those that may not.

Each rule gives the sentences that a word deserves: none when it is good.
"""

import re
from collections.abc import Callable

Rule = Callable[[str], list[str]]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_IS_LABEL = re.compile(_LABEL).fullmatch
_IS_SUBDOMAIN = re.compile(_SUBDOMAIN).fullmatch
_IS_DNS_1035 = re.compile(_DNS_1035).fullmatch
_IS_QUALIFIED = re.compile(_QUALIFIED).fullmatch
_IS_VALUE = re.compile(_VALUE).fullmatch
_IS_CONFIG_KEY = re.compile(_CONFIG_KEY).fullmatch
_IS_ENVIRONMENT_NAME = re.compile(r"[ -<>-~]+").fullmatch

SUBDOMAIN_LENGTH = 253
LABEL_LENGTH = 63

_SUBDOMAIN_SENTENCE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_SENTENCE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_DNS_1035_SENTENCE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS_1035}')"
)
_QUALIFIED_SENTENCE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_SENTENCE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE}')"
)
_CONFIG_KEY_SENTENCE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)
_ENVIRONMENT_SENTENCE = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def subdomain(word: str) -> list[str]:
    if len(word) > SUBDOMAIN_LENGTH:
        return [f"must be no more than {SUBDOMAIN_LENGTH} characters"]
    return [] if _IS_SUBDOMAIN(word) else [_SUBDOMAIN_SENTENCE]


def label(word: str) -> list[str]:
    if len(word) > LABEL_LENGTH:
        return [f"must be no more than {LABEL_LENGTH} characters"]
    return [] if _IS_LABEL(word) else [_LABEL_SENTENCE]


def name_without_dots(word: str) -> list[str]:
    """A label where people expect a subdomain: the dot is what they are told of."""
    return ["must not contain dots"] if "." in word else label(word)


def dns_1035_label(word: str) -> list[str]:
    if len(word) > LABEL_LENGTH:
        return [f"must be no more than {LABEL_LENGTH} characters"]
    return [] if _IS_DNS_1035(word) else [_DNS_1035_SENTENCE]


def path_segment(word: str) -> list[str]:
    """For names that are chosen by others and need only fit into a URL, such as those of roles."""
    if word in (".", ".."):
        return [f"may not be '{word}'"]
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in word]


def qualified(word: str) -> list[str]:
    """`name` or `domain.example/name`."""
    prefix, slash, name = word.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_QUALIFIED_SENTENCE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    sentences: list[str] = []
    if slash:
        told = subdomain(prefix) if prefix else ["must be non-empty"]
        sentences += [f"prefix part {sentence}" for sentence in told]
    if not name:
        sentences.append("name part must be non-empty")
    elif len(name) > LABEL_LENGTH:
        sentences.append(f"name part must be no more than {LABEL_LENGTH} characters")
    return sentences if _IS_QUALIFIED(name) else [*sentences, f"name part {_QUALIFIED_SENTENCE}"]


def label_value(word: str) -> list[str]:
    if len(word.encode()) > LABEL_LENGTH:
        return [f"must be no more than {LABEL_LENGTH} bytes"]
    return [] if _IS_VALUE(word) else [_VALUE_SENTENCE]


def config_key(word: str) -> list[str]:
    """A key of a ConfigMap or Secret: it becomes the name of a file."""
    if len(word) > SUBDOMAIN_LENGTH:
        return [f"must be no more than {SUBDOMAIN_LENGTH} characters"]
    if not _IS_CONFIG_KEY(word):
        return [_CONFIG_KEY_SENTENCE]
    if word == ".":
        return ["must not be '.'"]
    if word == "..":
        return ["must not be '..'"]
    return ["must not start with '..'"] if word.startswith("..") else []


def environment_name(word: str) -> list[str]:
    return [] if _IS_ENVIRONMENT_NAME(word) else [_ENVIRONMENT_SENTENCE]


def port_name(word: str) -> list[str]:
    sentences: list[str] = []
    if len(word) > 15:
        sentences.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", word):
        sentences.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", word):
        sentences.append("must contain at least one letter (a-z)")
    if "--" in word:
        sentences.append("must not contain consecutive hyphens")
    if word.startswith("-") or word.endswith("-"):
        sentences.append("must not begin or end with a hyphen")
    return sentences


def port_number(number: int) -> list[str]:
    return [] if 1 <= number <= 65535 else ["must be between 1 and 65535, inclusive"]
