"""Where the server is and which tokens to use: the context that is named, else environment variables, else the current one."""

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
    """A server and the tokens for it, as far as they are known; all from one place, so that no token goes to another server."""

    known: Mapping[str, str]  # by environment variable
    context: str | None = None  # the one that they come from; None: the environment

    @property
    def url(self) -> str | None:
        return self.known.get(URL)

    def require(self, variable: str) -> str:
        value = self.known.get(variable)
        if not value:
            raise failures.usage(self._missing(variable))
        return value

    def _missing(self, variable: str) -> str:
        option, meaning = FIELDS[variable], _MEANINGS[variable]
        stored = "flux-resourceset-cli config set-context"
        if self.context is not None:
            return f"context {self.context!r} has no {option}, {meaning}; store it with: {stored} {self.context} --{option} …"
        if not self.known:
            return f"{variable} is not set, {meaning}; export it, or log in: flux-resourceset-cli login URL, or {stored} NAME"
        set_already = " and ".join(self.known)
        return (
            f"{variable} is not set, {meaning}; with {set_already} set, everything comes from the environment: export it too, "
            f"or use a context: --context NAME, see {stored} --help"
        )

    def named(self, variable: str) -> str:
        """Where a value stands, for a message about it."""
        return variable if self.context is None else f"the {FIELDS[variable]} of the context"


def target(environment: Mapping[str, str], context: str | None) -> Target:
    """All of a context, or all of the environment: a token of one is never sent to an address of the other."""
    given = {name: environment[name] for name in FIELDS if environment.get(name)}
    if given and context is None:
        return Target(given)
    content = read(environment)
    name = context if context is not None else content.get("current-context")
    if name is None:
        return Target({})
    return Target(stored(content, name), name)


def stored(content: dict[str, Any], name: str) -> dict[str, str]:
    """What a context holds, by the variables that it stands for."""
    context = content["contexts"].get(name)
    if context is None:
        raise context_not_found(name, content)
    return {variable: context[field] for variable, field in FIELDS.items() if context.get(field)}


def context_not_found(name: str, content: dict[str, Any]) -> failures.Failure:
    known = f"there are {', '.join(content['contexts'])}" if content["contexts"] else "add one with login or config set-context"
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
