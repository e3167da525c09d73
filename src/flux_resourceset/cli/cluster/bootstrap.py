"""`bootstrap`: all that one cluster needs to phone home, with its values in place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from flux_resourceset import atomic_files, cluster_bundle, render
from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import manifest_files, view_sources
from flux_resourceset.render import dialect

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

RECONCILE_EVERY = "fluxcd.controlplane.io/reconcileEvery"
DEFAULT_INTERVAL = "5m"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class File(NamedTuple):
    name: str
    text: str
    secret: bool = False


class _Values(NamedTuple):
    """What differs from cluster to cluster."""

    url: str
    dns: str
    interval: str
    secret: str | None  # an existing one


def bootstrap(session: Session) -> int:
    values = session.values
    url = _url(values.text("api-url"))
    interval = values.text("interval") or DEFAULT_INTERVAL
    view_sources.seconds(interval, "--interval")
    secret = _existing_secret(session)
    token = _token(session) if secret is None else None
    views = view_sources.of_server(session)  # first: it tells when the server does not serve operators
    cluster = view_sources.cluster(session, values.required("cluster"))
    own = _Values(url, cluster["cluster_dns"], interval, secret)
    files = [_identity(cluster, url)]
    if secret is None:
        files.append(_secret(token))
        if token is None:
            session.say("note: the token Secret holds a placeholder; give --token-file or --existing-secret")
    for view in views:
        files.append(_view(session, view, own))
    _deliver(session, files)
    return failures.OK


# What was asked


def _url(text: str | None) -> str:
    if text is None:
        raise failures.usage("--api-url is missing: the URL of the API as the cluster reaches it")
    parts = urlsplit(text)
    good = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment or parts.username)
    if not good or not text.isascii() or not text.isprintable() or " " in text:
        raise failures.usage(f"--api-url is {text!r}; write it as in https://fleet.example.com")
    return parts.scheme + text[len(parts.scheme) :].rstrip("/")  # the scheme in lower case


def _existing_secret(session: Session) -> str | None:
    name = session.values.text("existing-secret")
    if name is not None and session.values.text("token-file") is not None:
        raise failures.usage("--token-file and --existing-secret exclude each other")
    if name is not None and not _NAME.fullmatch(name):
        raise failures.usage(f"--existing-secret is {name!r}, which is no name of a Secret")
    return name


def _token(session: Session) -> str | None:
    file = session.values.text("token-file")
    if file is None:
        return None
    token = view_sources.read(session, file).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise failures.usage(f"{file} holds no token: one word of visible characters")
    return token


# What is given


def _identity(cluster: dict[str, Any], url: str) -> File:
    (manifest,) = _objects(cluster_bundle.files()[cluster_bundle.IDENTITY])
    manifest["data"] = {
        "CLUSTER_NAME": cluster["cluster_name"],
        "CLUSTER_DNS": cluster["cluster_dns"],
        "ENVIRONMENT": cluster["environment"],
        "INTERNAL_API_URL": url,
    }
    return File(cluster_bundle.IDENTITY, dialect.presented([manifest]))


def _secret(token: str | None) -> File:
    (manifest,) = _objects(cluster_bundle.files()[cluster_bundle.TOKEN])
    if token is not None:
        manifest["stringData"] = {"token": token}
    return File(cluster_bundle.TOKEN, dialect.presented([manifest]), secret=True)


def _view(session: Session, view: view_sources.View, own: _Values) -> File:
    """The ResourceSet comes first: one that stays from before must not see what the new provider brings."""
    objects = [_provider(view.name, own)]
    if view.template is None:
        session.say(f"note: {view.name} has no ResourceSet; put one beside its kind in RESOURCES_DIR. Its provider alone is here")
    else:
        if (named := view_sources.provider_name(view.template)) != view.name:
            session.say(f"note: the ResourceSet of {view.name} takes its inputs from {named}, not from the provider {view.name}")
        objects.insert(0, _guarded(view.name, view.template, own.dns))
    return File(f"view-{view.name}.yaml", dialect.presented(objects))


def _guarded(view: str, template: render.Manifest, dns: str) -> render.Manifest:
    """A ResourceSet that acts in this cluster only and on its inputs only, whether the author thought of it or not."""
    spec = template.get("spec") or {}
    own = [each for each in spec.get("dependsOn") or () if isinstance(each, dict)]
    fed = any(isinstance(source, dict) and source.get("name") == view for source in spec.get("inputsFrom") or ())
    guards = [guard for guard in cluster_bundle.guards(view) if fed or guard["kind"] == "ConfigMap"]
    all_guards = [*guards, *(each for each in own if each not in guards)]
    filled = [{name: _filled(value, dns) for name, value in each.items()} for each in all_guards]
    return {**template, "spec": {"dependsOn": filled, **{name: value for name, value in spec.items() if name != "dependsOn"}}}


def _filled(value: Any, dns: str) -> Any:
    return value.replace("${CLUSTER_DNS}", dns) if isinstance(value, str) else value


def _provider(view: str, own: _Values) -> render.Manifest:
    """The shipped provider of the view, or any other with the name of this view in its place."""
    pattern, text = view, cluster_bundle.provider(view)
    if text is None:
        pattern, text = cluster_bundle.any_provider()
    (manifest,) = _objects(text)
    metadata, spec = manifest["metadata"], manifest["spec"]
    metadata["name"] = view
    metadata["annotations"] = {name: _filled(value, own.dns) for name, value in metadata["annotations"].items()}
    metadata["annotations"][RECONCILE_EVERY] = own.interval
    url = spec["url"].removesuffix(f"/{pattern}") + f"/{view}"
    spec["url"] = _filled(url.replace("${INTERNAL_API_URL}", own.url), own.dns)
    if own.url.startswith("http://"):
        spec["insecure"] = True
    if own.secret is not None:
        spec["secretRef"] = {"name": own.secret}
    return manifest


def _objects(text: str) -> list[render.Manifest]:
    return [document for _, document in dialect.documents(text)]


def _deliver(session: Session, files: list[File]) -> None:
    folder = session.values.text("directory")
    if folder is None:
        form = session.values.text("output")
        if form in (None, "yaml"):
            session.output.raw("".join(file.text for file in files).encode())
        else:
            manifest_files.show(session.output, form, [manifest for file in files for manifest in _objects(file.text)])
        return
    with manifest_files.writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            mode = atomic_files.OWNER_ONLY if file.secret else atomic_files.AS_USUAL
            atomic_files.replace(Path(folder) / file.name, file.text.encode(), durable=False, mode=mode)
    session.say(f"{len(files)} files in {folder}; apply them with kubectl apply -f {folder}")
