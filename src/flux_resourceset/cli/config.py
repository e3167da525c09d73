"""Where the server is and which tokens to use: environment variables, then the contexts of the configuration file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from flux_resourceset import atomic_files
from flux_resourceset.cli import failures, windows

URL, TOKEN, WRITE_TOKEN = "FLUX_API_URL", "FLUX_API_TOKEN", "FLUX_API_WRITE_TOKEN"

FIELDS = {URL: "url", TOKEN: "token", WRITE_TOKEN: "write-token"}
_MEANINGS = {URL: "the base URL of the API", TOKEN: "the token for reading", WRITE_TOKEN: "the token for writing"}


_LONGEST = 1_000_000  # characters: thousands of contexts


class Target(NamedTuple):
    """A server and the tokens for it, as far as they are known."""

    known: Mapping[str, str]  # by environment variable

    @property
    def url(self) -> str | None:
        return self.known.get(URL)

    def require(self, variable: str) -> str:
        value = self.known.get(variable)
        if not value:
            option = FIELDS[variable]
            raise failures.usage(
                f"{variable} is not set, {_MEANINGS[variable]}; export it, "
                f"or store it with: flux-resourceset-cli config set-context NAME --{option} …"
            )
        return value


def target(environment: Mapping[str, str], context: str | None) -> Target:
    given = {name: environment[name] for name in FIELDS if environment.get(name)}
    if len(given) == len(FIELDS) and context is None:
        return Target(given)  # the file would change nothing
    content = read(environment)
    name = context or content.get("current-context")
    if name is None:
        return Target(given)
    stored = content["contexts"].get(name)
    if stored is None:
        raise context_not_found(name, content)
    return Target({**{variable: stored[field] for variable, field in FIELDS.items() if stored.get(field)}, **given})


def context_not_found(name: str, content: dict[str, Any]) -> failures.Failure:
    known = f"there are {', '.join(content['contexts'])}" if content["contexts"] else "add one with config set-context"
    return failures.usage(f'context "{name}" not found; {known}')


# The file


def path(environment: Mapping[str, str]) -> str:
    folder = environment.get("XDG_CONFIG_HOME") or os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(folder, "flux-resourceset", "config.yaml")


def read(environment: Mapping[str, str]) -> dict[str, Any]:
    """The configuration, or an empty one; refused when somebody else could read the tokens in it."""
    file = path(environment)
    try:
        with open(file, encoding="utf-8") as stream:
            if windows.others_can_read(stream.fileno()):
                raise failures.usage(f"{file} holds tokens and others can read it; run: chmod 600 {file}")
            text = stream.read(_LONGEST + 1)
    except FileNotFoundError:
        return {"contexts": {}}
    except (OSError, UnicodeDecodeError) as exc:
        raise failures.usage(f"{file} cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
    if len(text) > _LONGEST:
        raise failures.usage(f"{file} is too long to be a configuration")
    return _checked(file, text)


def _checked(file: str, text: str) -> dict[str, Any]:
    from flux_resourceset.cli import document_files

    documents = document_files.loaded(file, text)
    if len(documents) > 1:
        raise failures.usage(f"{file}: must hold one document, not {len(documents)}")
    content = documents[0] if documents and documents[0] is not None else {}
    contexts = content.get("contexts") or {} if isinstance(content, dict) else None
    if not isinstance(contexts, dict) or not all(isinstance(item, dict) for item in contexts.values()):
        raise failures.usage(f"{file}: `contexts` must map names to url, token and write-token")
    if not isinstance(content.get("current-context", ""), str | None):
        raise failures.usage(f"{file}: current-context must be the name of a context")
    for name, context in contexts.items():
        for field, value in context.items():
            if field not in FIELDS.values() or not isinstance(value, str):
                raise failures.usage(f"{file}: context {name!r}: {field} must be one of url, token, write-token, with a text")
    return {**content, "contexts": contexts}


def write(environment: Mapping[str, str], content: dict[str, Any]) -> str:
    import yaml

    file = path(environment)
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        atomic_files.replace(file, text.encode())
    except OSError as exc:
        raise failures.usage(f"{file} cannot be written: {exc.strerror}") from exc
    return file
