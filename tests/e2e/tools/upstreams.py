"""What the end-to-end suite builds from upstream Go modules: the pins, the packages and the binaries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).parent

KUBERNETES = "v1.36.3"
_OPERATOR = "github.com/controlplaneio-fluxcd/flux-operator"
_HELM = "helm.sh/helm/v4"
_REGISTRY = "github.com/google/go-containerregistry"
_ACTIONLINT = "github.com/rhysd/actionlint"
_CLOUDNATIVEPG = "github.com/cloudnative-pg/cloudnative-pg"
_COSIGN = "github.com/sigstore/cosign/v3"
_EXTERNAL_SECRETS = "github.com/external-secrets/external-secrets"
_KEYCHAIN = f"{_REGISTRY}/pkg/authn/kubernetes"


@dataclass(frozen=True)
class Upstream:
    """One pinned Go module under `tests/e2e/tools/<directory>`.

    One module per upstream, because each upstream's own `replace` lines only hold in the main module.
    """

    directory: str
    module: str
    version: str
    packages: tuple[str, ...]  # each with its version, as `go get -tool` takes them; none where only its definitions are used
    replace: tuple[str, ...] = ()
    crds: str | None = None  # where the module keeps its custom resource definitions
    definitions: str = "*"  # which of the files there are used

    @property
    def path(self) -> Path:
        return TOOLS / self.directory


@dataclass(frozen=True)
class Binary:
    """One executable: built from `package` within the pinned module `directory`."""

    name: str
    directory: str
    package: str
    ldflags: str = "-s -w"
    placeholder: str | None = None  # a file that upstream embeds but does not publish in its module


def _flux(name: str, version: str) -> Upstream:
    module = f"github.com/fluxcd/{name}"
    return Upstream(name, module, version, (f"{module}@{version}",), crds="config/crd/bases")


UPSTREAMS = (
    Upstream(
        "flux-operator",
        _OPERATOR,
        "v0.58.1",
        (f"{_OPERATOR}/cmd/cli@v0.58.1", f"{_OPERATOR}/cmd/operator@v0.58.1"),
        # The pseudo-version that upstream pins is not served by every module proxy.
        (f"{_KEYCHAIN} => {_KEYCHAIN} v0.0.0-20250225234217-098045d5e61f",),
        crds="config/crd/bases",
    ),
    Upstream(
        "kubernetes",
        "k8s.io/kubernetes",
        KUBERNETES,
        (
            f"k8s.io/kubernetes/cmd/kube-apiserver@{KUBERNETES}",
            f"k8s.io/kubernetes/cmd/kube-controller-manager@{KUBERNETES}",
            f"k8s.io/kubernetes/cmd/kubectl@{KUBERNETES}",
            "go.etcd.io/etcd/server/v3@v3.6.8",
        ),
    ),
    _flux("source-controller", "v1.9.3"),
    _flux("helm-controller", "v1.6.2"),
    _flux("kustomize-controller", "v1.9.4"),
    _flux("notification-controller", "v1.9.3"),
    Upstream("helm", _HELM, "v4.2.2", (f"{_HELM}/cmd/helm@v4.2.2",)),
    Upstream("registry", _REGISTRY, "v0.22.1", (f"{_REGISTRY}/cmd/registry@v0.22.1",)),
    Upstream("actionlint", _ACTIONLINT, "v1.7.12", (f"{_ACTIONLINT}/cmd/actionlint@v1.7.12",)),
    Upstream("cloudnative-pg", _CLOUDNATIVEPG, "v1.27.0", (), crds="config/crd/bases"),
    Upstream("cosign", _COSIGN, "v3.1.3", (f"{_COSIGN}/cmd/cosign@v3.1.3",)),
    # Its definitions only: its own modules are not published, so nothing of it builds outside its tree.
    Upstream(
        "external-secrets",
        _EXTERNAL_SECRETS,
        "v1.3.2",
        (),
        crds="config/crds/bases",
        definitions="external-secrets.io_[es]*.yaml",  # of ExternalSecret and SecretStore; the file of kustomize is no definition
    ),
)


def _kubernetes_ldflags() -> str:
    """Without a stamped version /version answers `v0.0.0-master+$Format`, which kubectl cannot parse."""
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    stamp = {
        "gitVersion": KUBERNETES,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "e2e",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {p}.{key}={value}" for p in packages for key, value in stamp.items())])


# In the order of building: the offline renderer first, because it is useful alone.
BINARIES = (
    Binary("flux-operator-cli", "flux-operator", f"{_OPERATOR}/cmd/cli"),
    Binary("flux-operator", "flux-operator", f"{_OPERATOR}/cmd/operator", placeholder="web/dist/index.html"),
    Binary("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
    Binary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", _kubernetes_ldflags()),
    Binary("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", _kubernetes_ldflags()),
    Binary(
        "kube-controller-manager",
        "kubernetes",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        _kubernetes_ldflags(),
    ),
    Binary("source-controller", "source-controller", "github.com/fluxcd/source-controller"),
    Binary("helm-controller", "helm-controller", "github.com/fluxcd/helm-controller"),
    Binary("kustomize-controller", "kustomize-controller", "github.com/fluxcd/kustomize-controller"),
    Binary("notification-controller", "notification-controller", "github.com/fluxcd/notification-controller"),
    Binary("helm", "helm", f"{_HELM}/cmd/helm"),
    Binary("registry", "registry", f"{_REGISTRY}/cmd/registry"),
    Binary("actionlint", "actionlint", f"{_ACTIONLINT}/cmd/actionlint"),  # of make lint-workflows
    Binary("cosign", "cosign", f"{_COSIGN}/cmd/cosign"),
)
