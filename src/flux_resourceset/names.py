"""Names as Kubernetes spells them: of objects, of hosts, of labels. Pure."""

from __future__ import annotations

import re

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_dns_label(text: str) -> bool:
    return _DNS_LABEL.fullmatch(text) is not None


def is_dns_name(text: str) -> bool:
    return len(text) <= 253 and all(map(is_dns_label, text.split(".")))


def is_label_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _LABEL_NAME.fullmatch(name) is not None and (not slash or is_dns_name(prefix))


def is_label_value(text: str) -> bool:
    return not text or _LABEL_NAME.fullmatch(text) is not None
