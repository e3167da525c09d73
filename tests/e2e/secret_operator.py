"""Stand-ins for a Vault server and for the controller of External Secrets, on its real custom resource definitions.

    with secret_operator.standing_in(kube, server="https://vault.acme.example") as vault:
        vault.write("secret/data/payment-app/dev", {"db_password": "first"})
        ...                                     # an ExternalSecret arrives; the Secret with it
        vault.write("secret/data/payment-app/dev", {"db_password": "rotated"})
        kube.wait_for_object("secret", name, namespace, where=lambda found: decoded(found)["db_password"] == "rotated")

What they leave out, they refuse by a condition that says so: templates, generators, cluster-wide stores, other ways to log in.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from .kube import Kube, KubectlFailed, Object, condition

SECRETS, STORES = "externalsecrets.external-secrets.io", "secretstores.external-secrets.io"
MANAGED = "reconcile.external-secrets.io/managed"  # the label by which the real one knows its own, too
LOOK_SECONDS = 1.0  # whatever refreshInterval says: nobody here waits an hour for a rotation
_MANAGER = "stand-in-secret-controller"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Refused(Exception):
    """A secret cannot be written; the message goes into the object's condition."""


def decoded(secret: Object) -> dict[str, str]:
    """The data of a Secret as text."""
    return {key: base64.b64decode(value).decode() for key, value in secret.get("data", {}).items()}


# The vault


class StandInVault(ThreadingHTTPServer):
    """A KV v2 store over HTTP: every write is a new version, reads need the token of a login."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _VaultHandler)
        self.token = "stand-in-root-token"
        self.sealed = False  # True: every request is answered 503, as when nobody has unsealed it yet
        self.logins: list[tuple[str, str]] = []  # method and role
        self.reads: list[str] = []  # paths
        self._versions: dict[str, list[Mapping[str, Any] | None]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def write(self, path: str, values: Mapping[str, Any]) -> int:
        """A new version of the secret at MOUNT/data/PATH, as policies and ExternalSecrets name it; answers its number."""
        versions = self._versions.setdefault(path, [])
        versions.append(dict(values))
        return len(versions)

    def delete(self, path: str) -> None:
        """Its present version is gone; a later write has the next number."""
        self._versions.setdefault(path, []).append(None)

    def answer(self, method: str, path: str, token: str | None, body: Mapping[str, Any]) -> tuple[int, Object]:
        """Status and document, as the HTTP API of Vault has them."""
        if self.sealed:
            return 503, {"errors": ["Vault is sealed"]}
        parts = path.removeprefix("/v1/").split("/")
        if method == "POST" and parts[0] == "auth" and parts[-1] == "login":
            if not body.get("role") or not body.get("jwt"):
                return 400, {"errors": ["missing role or jwt"]}
            self.logins.append(("/".join(parts[1:-1]), body["role"]))
            return 200, {"auth": {"client_token": self.token, "lease_duration": 3600, "renewable": False}}
        if token != self.token:
            return 403, {"errors": ["permission denied"]}
        self.reads.append("/".join(parts))
        versions = self._versions.get("/".join(parts), [])
        if method != "GET" or not versions or versions[-1] is None:
            return 404, {"errors": []}
        return 200, {"data": {"data": versions[-1], "metadata": {"version": len(versions), "destroyed": False}}}


class _VaultHandler(BaseHTTPRequestHandler):
    server: StandInVault
    timeout = 10  # what a connection may be silent

    def do_GET(self) -> None:  # the name that http.server calls
        self._answer({})

    def do_POST(self) -> None:  # the name that http.server calls
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Mapping[str, Any]) -> None:
        status, document = self.server.answer(self.command, self.path, self.headers.get("X-Vault-Token"), body)
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: `logins` and `reads` remember."""


# The controller


@dataclass
class StandInSecretController:
    """Reads every ExternalSecret, writes the Secret that it asks for, and reports on it, again and again."""

    kube: Kube
    servers: Mapping[str, str] = field(default_factory=dict)  # from the server that a SecretStore names to the one that stands in
    stopping: threading.Event = field(default_factory=threading.Event)
    tokens: dict[tuple[str, ...], str] = field(default_factory=dict)  # of logins: nothing here makes one expire

    def run(self) -> None:
        while not self.stopping.is_set():
            # The API server may be away, or an object gone since it was read: then look again.
            with contextlib.suppress(KubectlFailed):
                self.look()
            self.stopping.wait(LOOK_SECONDS)

    def look(self) -> None:
        """Once through all of them."""
        found = self.kube.find(f"{SECRETS},{STORES}")
        stores = {
            (each["metadata"]["namespace"], each["metadata"]["name"]): each for each in found if each["kind"] == "SecretStore"
        }
        for store in stores.values():
            self._report(STORES, store, True, "Valid", "store validated")
        written = {_named(each): each for each in self.kube.find("secrets", selector=f"{MANAGED}=true")}
        for wanted in found:
            if wanted["kind"] == "ExternalSecret" and "deletionTimestamp" not in wanted["metadata"]:
                self._synchronize(wanted, stores, written)

    def _synchronize(
        self, wanted: Object, stores: Mapping[tuple[str, str], Object], written: Mapping[tuple[str, str], Object]
    ) -> None:
        namespace = wanted["metadata"]["namespace"]
        try:
            _refuse_the_unknown(wanted["spec"])
            name = wanted["spec"]["secretStoreRef"]["name"]
            if (namespace, name) not in stores:
                raise Refused(f'could not get SecretStore "{name}"')
            secret = _secret(wanted, self._values(stores[namespace, name], wanted["spec"]))
        except Refused as problem:
            # What was written before stays: a vault that is away must not take a running application's password.
            self._report(SECRETS, wanted, False, "SecretSyncedError", str(problem))
            return
        if _differs(secret, written.get(_named(secret))):
            self.kube.run(
                "apply", "--server-side", "--force-conflicts", f"--field-manager={_MANAGER}", "-f", "-", stdin=json.dumps(secret)
            )
        self._report(SECRETS, wanted, True, "SecretSynced", "secret synced")

    def _values(self, store: Object, spec: Object) -> dict[str, str]:
        vault = store["spec"].get("provider", {}).get("vault")
        if not vault or vault.get("version", "v2") != "v2":
            raise Refused("the stand-in knows only the provider vault with version v2")
        token = self._token(store["metadata"]["namespace"], vault)
        values: dict[str, str] = {}
        for source in spec.get("dataFrom", []):
            held = self._read(vault, token, source["extract"]["key"])
            values |= {key: _text(value) for key, value in held.items()}
        for wanted in spec.get("data", []):
            remote = wanted["remoteRef"]
            held = self._read(vault, token, remote["key"])
            values[wanted["secretKey"]] = _property(held, remote.get("property"), remote["key"])
        return values

    def _token(self, namespace: str, vault: Object) -> str:
        """Of the Secret that the store names, or of a login with a service account's own token."""
        match vault.get("auth"):
            case {"tokenSecretRef": {"name": name, "key": key}}:
                held = decoded(self.kube.get("secret", name, namespace) or {})
                if key not in held:
                    raise Refused(f'no key "{key}" in the Secret "{name}"')
                return held[key]
            case {"kubernetes": {"mountPath": mount, "role": role, "serviceAccountRef": {"name": account}}}:
                who = (vault["server"], mount, role, namespace, account)
                if who not in self.tokens:
                    jwt = self._account_token(account, namespace)
                    auth = self._ask(vault, f"auth/{mount}/login", body={"role": role, "jwt": jwt})
                    self.tokens[who] = str(auth["auth"]["client_token"])
                return self.tokens[who]
        raise Refused("the stand-in knows only the auth tokenSecretRef, and kubernetes with a serviceAccountRef")

    def _account_token(self, account: str, namespace: str) -> str:
        try:
            return self.kube.run("create", "token", account, "--namespace", namespace).strip()
        except KubectlFailed as problem:
            raise Refused(str(problem)) from problem

    def _read(self, vault: Object, token: str, key: str) -> dict[str, Any]:
        held: dict[str, Any] = self._ask(vault, _api_path(vault.get("path"), key), token)["data"]["data"]
        return held

    def _ask(self, vault: Object, path: str, token: str = "", *, body: Object | None = None) -> Object:
        server = self.servers.get(vault["server"], vault["server"]).rstrip("/")
        if urlsplit(server).hostname not in ("127.0.0.1", "localhost"):
            raise Refused(f"nothing stands in for {server}")
        content = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json", "X-Vault-Token": token}
        try:
            with _DIRECT.open(urllib.request.Request(f"{server}/v1/{path}", content, headers), timeout=10) as answer:
                document: Object = json.load(answer)
                return document
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise Refused(f"{path}: {refusal.code} {refusal.read().decode()}") from refusal
        except OSError as problem:
            raise Refused(f"{path}: {problem}") from problem

    def _report(self, kind: str, about: Object, good: bool, reason: str, message: str) -> None:
        said = {"type": "Ready", "status": "True" if good else "False", "reason": reason, "message": message}
        if said.items() <= condition(about, "Ready").items():
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status: Object = {"conditions": [{**said, "lastTransitionTime": now}]}
        if kind == SECRETS and good:
            status |= {"refreshTime": now, "binding": {"name": _target(about)}}
        namespace, name = _named(about)
        change = json.dumps({"status": status})
        self.kube.run("patch", kind, name, "--namespace", namespace, "--subresource=status", "--type=merge", f"--patch={change}")


def _refuse_the_unknown(spec: Object) -> None:
    target = spec.get("target", {})
    unknown = [f"target.{name}" for name in ("manifest", "immutable") if name in target]
    unknown += [f"target.template.{name}" for name in ("data", "templateFrom") if name in target.get("template", {})]
    unknown += [f"data.{name}" for each in spec.get("data", []) for name in ("sourceRef",) if name in each]
    unknown += [f"dataFrom.{name}" for each in spec.get("dataFrom", []) for name in each if name != "extract"]
    if target.get("creationPolicy", "Owner") not in ("Owner", "Orphan"):
        unknown.append("target.creationPolicy")
    if spec.get("secretStoreRef", {}).get("kind", "SecretStore") != "SecretStore":
        unknown.append("secretStoreRef.kind")
    if unknown:
        raise Refused(f"the stand-in does not know {', '.join(unknown)}")


def _named(found: Object) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]


def _target(wanted: Object) -> str:
    return str(wanted["spec"].get("target", {}).get("name") or wanted["metadata"]["name"])


def _secret(wanted: Object, values: Mapping[str, str]) -> Object:
    namespace, name = _named(wanted)
    target = wanted["spec"].get("target", {})
    metadata: Object = {"name": _target(wanted), "namespace": namespace, "labels": {MANAGED: "true"}}
    if target.get("creationPolicy", "Owner") == "Owner":
        owner = {"apiVersion": wanted["apiVersion"], "kind": "ExternalSecret", "name": name, "uid": wanted["metadata"]["uid"]}
        metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    type_ = target.get("template", {}).get("type", "Opaque")
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_, "data": data}


def _differs(secret: Object, written: Object | None) -> bool:
    return written is None or any(written.get(key) != secret[key] for key in ("data", "type"))


def _api_path(mount: str | None, key: str) -> str:
    """Keys are taken with the mount and its `data/` or without, as the real provider takes them."""
    first, _, rest = key.partition("/")
    if mount:
        first, rest = mount, key.removeprefix(f"{mount}/")
    return f"{first}/data/{rest.removeprefix('data/')}"


def _property(held: Mapping[str, Any], name: str | None, key: str) -> str:
    if name is None:
        return json.dumps(held)
    if name not in held:
        raise Refused(f'cannot find secret data for key: "{name}" in {key}')
    return _text(held[name])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextlib.contextmanager
def standing_in(kube: Kube, server: str | None = None) -> Iterator[StandInVault]:
    """Both of them at work; the vault also answers for the server that the SecretStores of a repository name."""
    with StandInVault() as vault:
        controller = StandInSecretController(kube, {server: vault.url} if server else {})
        threads = [
            threading.Thread(target=vault.serve_forever, kwargs={"poll_interval": 0.05}, name="vault", daemon=True),
            threading.Thread(target=controller.run, name="secret-controller", daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield vault
        finally:
            controller.stopping.set()
            vault.shutdown()
            for thread in threads:
                thread.join()
