"""Which names of values look like those of secrets, which have no place where everybody can read."""

from __future__ import annotations

import re

SECRET_ENDINGS = (
    "password", "passwd", "passphrase", "apikey", "privatekey", "clientsecret", "secretkey", "accesskey", "credentials",
)  # fmt: skip
SECRET_WORDS = frozenset({"secret", "token", "authtoken", "accesstoken", "bearertoken"})

_ELEMENTS = re.compile(r"\[[0-9]*\]")  # of lists: a secret among others is one


def looks_secret(key: str) -> bool:
    last = _ELEMENTS.sub("", key).rpartition(".")[2].lower().replace("-", "").replace("_", "")
    return last in SECRET_WORDS or last.endswith(SECRET_ENDINGS)
