"""Kubeconfig files are read and merged as kubectl reads and merges them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.errors import InvalidKubeconfig
from tessera.kube.kubeconfig import Cluster, Context, Kubeconfig, User, load_kubeconfig, merge, parse_kubeconfig

FILE = """
apiVersion: v1
kind: Config
current-context: dev
preferences: {colors: true}
clusters:
- name: dev
  cluster: {server: "https://dev:6443", certificate-authority: pki/ca.crt}
users:
- name: me
  user: {client-certificate: me.crt, client-key: /abs/me.key, tokenFile: token}
- name: plug
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login}
- name: cloud
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}
contexts:
- name: dev
  context: {cluster: dev, user: me, namespace: team}
"""


def test_a_context_leads_to_its_cluster_and_user() -> None:
    context, cluster, user = parse_kubeconfig(FILE, Path("/srv/kube/config")).choose()

    assert (context.namespace, cluster.server) == ("team", "https://dev:6443")
    assert user.client_certificate == "/srv/kube/me.crt"


def test_relative_paths_start_at_the_file_that_holds_them() -> None:
    config = parse_kubeconfig(FILE, Path("/etc/k/config"))

    assert config.clusters["dev"].certificate_authority == "/etc/k/pki/ca.crt"
    assert config.users["me"].client_key == "/abs/me.key"
    assert config.users["me"].token_file == "/etc/k/token"


def test_a_plugin_with_a_slash_is_relative_and_one_without_is_looked_for() -> None:
    users = parse_kubeconfig(FILE, Path("/etc/k/config")).users
    commands = [plugin.command for user in (users["plug"], users["cloud"]) if (plugin := user.exec)]

    assert commands == ["/etc/k/bin/login", "aws"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("clusters: [", "/k: is not YAML"),
        ("clusters: {}", "/k: clusters is an object, expected a list"),
        ("- 1", "/k: the document is a list, expected an object"),
        ("users: [{name: 1}]", "/k: users[0].name is 1, expected a string"),
        ("users: [{name: a}, {name: a}]", '/k: user "a" is there twice'),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused_in_one_sentence(text: str, complaint: str) -> None:
    with pytest.raises(InvalidKubeconfig) as refusal:
        parse_kubeconfig(text, Path("/k"))

    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("context", "complaint"),
    [
        (None, "current-context is empty"),
        ("gone", 'context "gone" is not there, expected one of: lost, bare'),
        ("lost", 'cluster "nowhere" is not there'),
        ("bare", 'cluster "c" has no server'),
    ],
)
def test_a_context_that_leads_nowhere_is_refused_in_one_sentence(context: str | None, complaint: str) -> None:
    config = Kubeconfig(
        where="/k",
        contexts={"lost": Context(cluster="nowhere"), "bare": Context(cluster="c")},
        clusters={"c": Cluster()},
    )

    with pytest.raises(InvalidKubeconfig) as refusal:
        config.choose(context)

    assert complaint in str(refusal.value)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidKubeconfig, match="cannot be read"):
        load_kubeconfig([tmp_path / "none"])


names = st.sampled_from("abc")
configs = st.builds(
    Kubeconfig,
    where=st.just("/k"),
    current_context=st.sampled_from(["", "a", "b"]),
    clusters=st.dictionaries(names, st.builds(Cluster, server=st.text(max_size=3))),
    users=st.dictionaries(names, st.builds(User, token=st.text(max_size=3), username=st.text(max_size=3))),
    contexts=st.dictionaries(names, st.builds(Context, cluster=names)),
)


@given(st.lists(configs, max_size=4))
def test_the_first_file_that_has_a_name_wins_it_whole(files: list[Kubeconfig]) -> None:
    merged = merge(files)

    for name in "abc":
        for named in ("clusters", "users", "contexts"):
            having = [getattr(file, named)[name] for file in files if name in getattr(file, named)]
            assert getattr(merged, named).get(name) == (having[0] if having else None)
    assert merged.current_context == next((file.current_context for file in files if file.current_context), "")


@given(configs, configs, configs)
def test_merging_files_in_steps_is_merging_them_at_once(one: Kubeconfig, two: Kubeconfig, three: Kubeconfig) -> None:
    at_once, in_steps = merge([one, two, three]), merge([merge([one, two]), three])

    assert (at_once.clusters, at_once.users, at_once.contexts, at_once.current_context) == (
        in_steps.clusters,
        in_steps.users,
        in_steps.contexts,
        in_steps.current_context,
    )
