"""Image references, which rules meet which tenants, and how images are judged by what is known of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flux_resourceset.repositories import images, tenants, trees
from flux_resourceset.repositories.images import Answer, Check, Source, Subject
from flux_resourceset.repositories.layout import Tenant
from flux_resourceset.repositories.policy import Cosign, ImageRule, Policy, read

DIGEST = "sha256:" + "ab" * 32
IMAGE = f"registry.acme.com/payment:v2@{DIGEST}"
KEY = Cosign("keys/cosign.pub", None, None, False, "https://acme.example/tested")
RULE = ImageRule("prod", "image", "staging", 3600, KEY)
PROD = Tenant("prod", "prod-use1-01", "payment-app")
STAGING, STAGING_2 = Tenant("staging", "staging-use1-01", "payment-app"), Tenant("staging", "staging-use1-02", "payment-app")


def policy(*rules: dict[str, Any]) -> Policy:
    environments = [{"name": "dev"}, {"name": "staging"}, {"name": "prod"}]
    return read(json.dumps({"environments": environments, "images": rules}).encode())


def provider(type: str = "Static", **values: Any) -> bytes:
    spec = {"type": type, "defaultValues": values} if type == "Static" else {"type": type, "url": "https://fleet.acme.example"}
    return json.dumps({"kind": "ResourceSetInputProvider", "spec": spec}).encode()


def tree(files: dict[Tenant, bytes], *links: str) -> trees.Files:
    return trees.Files({tenant.path("input.yaml"): body for tenant, body in files.items()}, frozenset(links))


def subject(image: Any, rule: ImageRule = RULE) -> Subject:
    return Subject(rule, PROD, image)


# References


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        (IMAGE, f"registry.acme.com/payment@{DIGEST}"),
        (f"registry.acme.com/payment@{DIGEST}", f"registry.acme.com/payment@{DIGEST}"),
        (f"nginx:1.27@{DIGEST}", f"nginx@{DIGEST}"),
        (f"localhost:5000/acme/app:v1@{DIGEST}", f"localhost:5000/acme/app@{DIGEST}"),
        (f"127.0.0.1:5000/acme/app@{DIGEST}", f"127.0.0.1:5000/acme/app@{DIGEST}"),
        (f"[::1]:5000/acme/app:v1@{DIGEST}", f"[::1]:5000/acme/app@{DIGEST}"),
        (f"Registry.Acme.com/a__b/c--d/e.f_g:V1.0_x-@{DIGEST}", f"Registry.Acme.com/a__b/c--d/e.f_g@{DIGEST}"),
    ],
)
def test_an_image_with_its_digest_is_pinned_and_asked_for_without_its_tag(image: str, reference: str) -> None:
    assert images.pinned(subject(image)) == Check("ok")
    assert images.reference(image) == reference


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (None, "missing"),
        (5, "no text"),
        (True, "no text"),
        ([IMAGE], "no text"),
        ({"image": IMAGE}, "no text"),
        ("", "must end with"),
        ("registry.acme.com/payment:v2", "must end with"),
        ("registry.acme.com/payment:latest", "must end with"),
        (f"registry.acme.com/payment@{DIGEST[:-1]}", "must end with"),
        (f"registry.acme.com/payment@{DIGEST}0", "must end with"),
        (f"registry.acme.com/payment@{DIGEST.upper()}", "must end with"),
        (f"registry.acme.com/payment@sha512:{'ab' * 64}", "must end with"),
        (f"registry.acme.com/payment@{DIGEST.replace('ab', 'zz')}", "must end with"),
        (f"@{DIGEST}", "no reference"),
        (f"registry.acme.com/payment@{DIGEST}@{DIGEST}", "no reference"),
        (f"https://registry.acme.com/payment@{DIGEST}", "no reference"),
        (f"registry.acme.com//payment@{DIGEST}", "no reference"),
        (f"registry.acme.com/../payment@{DIGEST}", "no reference"),
        (f"registry.acme.com/Payment@{DIGEST}", "no reference"),
        (f"registry.acme.com/${{image}}@{DIGEST}", "no reference"),
        (f"registry.acme.com/pаyment@{DIGEST}", "no reference"),  # the second letter is Cyrillic
        (f"$(id)@{DIGEST}", "no reference"),
        (f"-registry.acme.com/payment@{DIGEST}", "option"),
        (f"--key=env://HOME@{DIGEST}", "option"),
        (f"{IMAGE}\n", "white space"),
        (f" {IMAGE}", "white space"),
        (f"registry.acme.com/pay ment@{DIGEST}", "white space"),
        (f"registry.acme.com/pay\u00a0ment@{DIGEST}", "white space"),
        (f"registry.acme.com/pay\x00ment@{DIGEST}", "control"),
        (f"registry.acme.com/pay\x1b[2Jment@{DIGEST}", "control"),
        (f"registry.acme.com/pay\u202ement@{DIGEST}", "control"),
    ],
)
def test_what_is_not_pinned_is_refused_and_cosign_is_not_asked(image: Any, why: str) -> None:
    check = images.pinned(subject(image))
    assert check.state == "failed"
    assert why in check.why
    assert [images.question(subject(image), name) for name in images.BY_COSIGN] == [None, None]


@pytest.mark.parametrize("text", ["a" * 500_000, "a." * 250_000, "a/" * 250_000, "-a" * 250_000, "a-" * 250_000 + "@sha256:"])
def test_a_very_long_text_is_refused_without_long_thought(text: str) -> None:
    assert images.reference(text) is None


# Which images are judged


def test_a_rule_meets_the_changed_images_of_its_environment() -> None:
    other = PROD._replace(name="orders")
    before = tree({PROD: provider(image="a"), other: provider(image="a"), STAGING: provider(image="a")})
    head = tree({PROD: provider(image="b"), other: provider(image="a", replicas=2), STAGING: provider(image="b")})
    by = policy({"environment": "prod"})
    changed = {each.path("input.yaml") for each in (PROD, other, STAGING)}
    assert [(each.place, each.image) for each in images.subjects(by, head, [before], changed)] == [(PROD, "b")]
    assert [(each.place, each.image) for each in images.subjects(by, head, [before], None)] == [(other, "a"), (PROD, "b")]
    assert list(images.subjects(by, head, [before], {"prod/prod-use1-01/tenants/payment-app/sync.yaml"})) == []


def test_two_rules_judge_one_tenant_by_two_fields() -> None:
    head = tree({PROD: provider(image="a", sidecar="b")})
    by = policy({"environment": "prod"}, {"environment": "prod", "field": "sidecar"})
    assert [(each.rule.field, each.image) for each in images.subjects(by, head, [], None)] == [("image", "a"), ("sidecar", "b")]


@pytest.mark.parametrize(
    ("before", "head", "judged"),
    [
        (provider(image="a"), provider(image="a"), False),
        (provider(image="a"), provider(image="b"), True),
        (provider(image="a"), provider(replicas=1), True),  # it vanished
        (provider(replicas=1), provider(replicas=2), False),
        (provider(image=1), provider(image=True), True),
        (provider(image=1.5), provider(image="1.5"), True),
        (None, provider(image="a"), True),
        (None, provider(replicas=1), True),  # a new tenant without an image
        (b"{", provider(image="a"), True),
        (provider("ExternalService"), provider(image="a"), True),
        (provider("ExternalService"), provider(replicas=1), True),
        (provider(image="a"), provider("ExternalService"), False),  # Git has no image
    ],
)
def test_an_image_is_judged_if_it_differs_from_what_was_there(before: bytes | None, head: bytes, judged: bool) -> None:
    trees_before = [tree({PROD: before} if before is not None else {})]
    found = list(images.subjects(policy({"environment": "prod"}), tree({PROD: head}), trees_before, {PROD.path("input.yaml")}))
    assert bool(found) is judged


def test_an_image_is_judged_if_it_differs_from_any_place_where_the_histories_met() -> None:
    befores = [tree({PROD: provider(image="a")}), tree({PROD: provider(image="b")})]
    changed = {PROD.path("input.yaml")}
    by = policy({"environment": "prod"})
    for image in ("a", "b"):
        assert [each.image for each in images.subjects(by, tree({PROD: provider(image=image)}), befores, changed)] == [image]


@pytest.mark.parametrize(
    "body",
    [
        b"kind: ResourceSetInputProvider\nspec:\n  type: Static\n  defaultValues:\n    image: a\n    image: b\n",
        b"\xff\xfe\x00",
        b"",
        b"[]",
        b"kind: ResourceSetInputProvider\nspec: {type: Other}\n",
        b"kind: ResourceSetInputProvider\nspec: {type: Static, defaultValues: [image]}\n",
        provider(image="a") + b"\n---\n" + provider(image="b"),
        b"[" * 5000,
        b"a: &a [x]\n" + b"".join(b"%c: &%c [*%c, *%c, *%c]\n" % (c + 1, c + 1, c, c, c) for c in range(97, 120)),
        b"x" * (trees.LARGEST + 1),
    ],
)
def test_a_changed_file_that_cannot_be_read_is_refused_by_name(body: bytes) -> None:
    path = PROD.path("input.yaml")
    with pytest.raises(tenants.Broken, match=path):
        list(images.subjects(policy({"environment": "prod"}), tree({PROD: body}), [tree({})], {path}))


class Locked(trees.Files):
    """A tree whose files are listed and cannot be read."""

    def read(self, path: str) -> bytes | None:
        return None


@pytest.mark.parametrize("path", [PROD.path("input.yaml"), PROD.where.path("base/agent.yaml"), PROD.where.path("flux/sync.yaml")])
def test_a_file_that_cannot_be_read_is_not_taken_for_one_that_is_not_there(path: str) -> None:
    with pytest.raises(tenants.Unread, match=f"{path}: is there and cannot be read"):
        list(images.subjects(policy({"environment": "prod"}), Locked({path: b""}), [tree({})], {path}))


@pytest.mark.parametrize("link", ["prod", "prod/prod-use1-02", "prod/prod-use1-02/tenants", "prod/prod-use1-01/tenants/orders"])
def test_a_link_in_the_place_of_a_directory_is_refused(link: str) -> None:
    head = tree({PROD: provider(image="a")} if link != "prod" else {}, link)
    with pytest.raises(tenants.Broken, match=f"^{link}: is a symlink"):
        list(images.subjects(policy({"environment": "prod"}), head, [tree({})], set()))
    assert list(images.subjects(policy({"environment": "staging"}), head, [tree({})], set())) == []


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\udcff"])
def test_a_tenant_with_a_name_that_git_cannot_be_asked_for_is_refused(name: str) -> None:
    head = tree({PROD._replace(name=name): provider(image="a")})
    with pytest.raises(tenants.Broken, match="control characters"):
        list(images.subjects(policy({"environment": "prod"}), head, [tree({})], set()))


# The same as before


def test_the_whole_value_must_be_in_every_cluster_that_has_the_tenant() -> None:
    twice = [Source(STAGING, IMAGE, None), Source(STAGING_2, IMAGE, None)]
    assert images.same(subject(IMAGE), twice) == Check("ok")
    check = images.same(subject(IMAGE), [twice[0], Source(STAGING_2, IMAGE.replace(":v2", ":v3"), None)])
    assert check == Check("failed", f"staging/staging-use1-02 has {IMAGE.replace(':v2', ':v3')}")
    assert images.same(subject(IMAGE), [Source(STAGING, None, None)]) == Check("failed", "staging/staging-use1-01 has none")
    endless = images.same(subject(IMAGE), [Source(STAGING, "x" * 201, None)])
    assert endless == Check("failed", f"staging/staging-use1-01 has {'x' * 199}…")
    assert images.same(subject(None), [Source(STAGING, None, None)]).state == "failed"
    assert images.same(subject(IMAGE), []) == Check("failed", "no cluster of staging has the tenant")
    assert images.same(subject(IMAGE, RULE._replace(same_as=None)), []) == Check("none")


def test_a_source_tells_why_nobody_knows_its_image() -> None:
    known = tree({STAGING: provider(image="a"), STAGING_2: provider("ExternalService")})
    by = policy()
    assert images.by_name(known, by, "staging") == {"payment-app": [STAGING, STAGING_2]}
    assert images.source(known, STAGING, "image") == Source(STAGING, "a", None)
    assert images.source(known, STAGING, "sidecar") == Source(STAGING, None, None)
    assert "the API holds" in str(images.source(known, STAGING_2, "image").flaw)
    assert STAGING.path("input.yaml") in str(images.source(tree({STAGING: b"{"}), STAGING, "image").flaw)
    assert "the API holds" in images.same(subject(IMAGE), [images.source(known, STAGING_2, "image")]).why


@pytest.mark.parametrize(
    ("history", "since"),
    [
        ([], None),
        ([("a", 30)], 30),
        ([("a", 30), ("b", 20), ("a", 10)], 30),  # it was another for a while
        ([("a", 30), ("a", 20), ("b", 10)], 20),  # the last commit changed something else
        ([("a", 30), ("a", 20), (None, 15), ("a", 10)], 20),  # it was gone for a while
        ([("a", 10), ("a", 40), ("b", 5)], 40),  # clocks differ: the commit that brought it counts
        ([("b", 30), ("a", 20)], None),
    ],
)
def test_a_value_came_with_the_commit_after_which_it_was_never_another(history: list[tuple[Any, int]], since: int | None) -> None:
    assert images.brought("a", iter(history)) == since


def test_an_image_soaks_in_every_cluster() -> None:
    now = 100_000.0
    assert images.soak(RULE, {STAGING: 96_400, STAGING_2: 0}, now) == Check("ok")
    short = images.soak(RULE, {STAGING: 0, STAGING_2: 96_401}, now)
    assert short == Check("failed", "it has been in staging/staging-use1-02 for 59m59s, and must be for 1h")
    assert "in the future" in images.soak(RULE, {STAGING: 100_001}, now).why
    assert images.soak(RULE, {STAGING: None}, now).state == "failed"
    assert images.soak(RULE, {}, now) == Check("none")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (3600, "1h"), (5400, "1h30m"), (90_061, "1d1h"), (86_401, "1d1s")]
)
def test_a_span_is_written_as_in_the_policy(seconds: int, text: str) -> None:
    assert images.span(seconds) == text


# Signatures


def test_cosign_is_asked_what_the_rule_wants() -> None:
    signature, attestation = (images.question(subject(IMAGE), name) for name in images.BY_COSIGN)
    assert signature == images.Question(KEY, f"registry.acme.com/payment@{DIGEST}", None)
    assert attestation == images.Question(KEY, f"registry.acme.com/payment@{DIGEST}", "https://acme.example/tested")
    unattested = RULE._replace(cosign=KEY._replace(attestation=None))
    assert images.question(subject(IMAGE, unattested), "attestation") is None
    assert images.question(subject(IMAGE, RULE._replace(cosign=None)), "signature") is None


def test_an_answer_decides_its_check() -> None:
    question = images.question(subject(IMAGE), "signature")
    assert question is not None
    assert images.answered(question, {question: Answer(True)}) == Check("ok")
    assert images.answered(question, {question: Answer(False, "no")}) == Check("failed", "no")
    assert images.answered(None, {}) == Check("none")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("keys/cosign.pub", "keys/cosign.pub"),
        ("./keys//cosign.pub", "keys/cosign.pub"),
        ("/etc/cosign.pub", None),
        ("../cosign.pub", None),
        ("keys/../../cosign.pub", None),
        ("env://COSIGN_PUBLIC_KEY", None),
        ("awskms:///alias/key", None),
        ("https://acme.example/cosign.pub", None),
        ("pkcs11:token=x", None),
        ("C:\\cosign.pub", None),
        ("keys\\cosign.pub", None),
        (".", None),
    ],
)
def test_a_key_is_a_file_of_the_repository(name: str, path: str | None) -> None:
    assert images.key_path(name) == path


def test_a_row_tells_every_check_and_every_reason_once() -> None:
    checks = dict.fromkeys(images.CHECKS, Check("ok")) | dict.fromkeys(images.BY_COSIGN, Check("failed", "cosign: no"))
    row = images.row(subject(IMAGE), {**checks, "same": Check("failed", "other")})
    assert row == {
        "object": None, "environment": "prod", "cluster": "prod-use1-01", "tenant": "payment-app", "image": IMAGE, "pinned": "ok",
        "same": "failed", "soak": "ok", "signature": "failed", "attestation": "failed", "message": "other; cosign: no",
    }  # fmt: skip
    assert images.refused(row)
    fine = images.row(subject(IMAGE), dict.fromkeys(images.CHECKS, Check("none")))
    assert fine["message"] == ""
    assert not images.refused(fine)
    assert images.row(subject(5), checks)["image"] is None
