"""A KubeSchedulerConfiguration that names GpuClaimPlugin becomes one that a stock kube-scheduler runs."""

import copy

import pytest
import yaml
from click.testing import CliRunner

from tessera.apps.scheduler import command
from tessera.errors import InvalidRequest
from tessera.scheduler.adapting import adapt_configuration
from tessera.scheduler.configuration import PROFILES, Endpoint, scheduler_configuration
from tessera.scheduler.profiles import OUR_PHASES, OURS, parse_configuration
from tests.unit.scheduler.cluster import CATALOGUE

ENDPOINT = Endpoint("http://127.0.0.1:8080")
PREFERENCES = ["TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity"]


def a_profile(name="gpu-scheduler", *phases, **fields):
    """A profile that enables our plugin in these phases, or in all of them."""
    plugins = {phase: {"enabled": [{"name": OURS}]} for phase in phases or OUR_PHASES}
    return {"schedulerName": name, "plugins": plugins, **fields}


def a_configuration(*profiles, **fields):
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**head, "profiles": list(profiles), **fields}


def adapted(document, **options):
    before = copy.deepcopy(document)
    given = parse_configuration(yaml.safe_dump(document).encode(), "file")
    made = adapt_configuration(given, CATALOGUE, ENDPOINT, **options)
    assert document == before
    return made


def scores_of(profile):
    return {plugin["name"]: plugin["weight"] for plugin in profile["plugins"]["score"]["enabled"]}


def test_the_seed_s_configuration_becomes_ours_with_its_own_profile():
    made = adapted(a_configuration(a_profile())).document
    ours = scheduler_configuration(CATALOGUE, ENDPOINT)
    (profile,) = made["profiles"]
    assert profile.pop("percentageOfNodesToScore") == 100
    assert profile == ours["profiles"][PROFILES.index("gpu-scheduler")]
    assert made["extenders"] == ours["extenders"]
    assert made["leaderElection"] == {"resourceName": "hami-scheduler", "resourceNamespace": "kube-system"}
    assert OURS not in yaml.safe_dump(made)


def test_both_of_our_profiles_leave_nothing_to_say():
    assert adapted(a_configuration(*(a_profile(name) for name in PROFILES))).notes == ()


def test_whoever_the_webhook_sends_pods_to_and_is_not_there_is_told():
    assert adapted(a_configuration(a_profile("mine"))).notes == tuple(
        f"file: no profile is called {name}; pods that the webhook sends there wait until some scheduler has it"
        for name in PROFILES
    )


def test_what_else_was_written_stays():
    extender = {"urlPrefix": "http://other:1", "filterVerb": "filter", "managedResources": [{"name": "other.io/nic"}]}
    volumes = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 60}}
    profile = a_profile(pluginConfig=[volumes, {"name": OURS, "args": {}}], percentageOfNodesToScore=50)
    profile["plugins"]["filter"] = {
        "enabled": [{"name": OURS}, {"name": "NodePorts"}],
        "disabled": [{"name": "NodeVolumeLimits"}],
    }
    profile["plugins"]["bind"] = None
    document = a_configuration(
        profile,
        parallelism=4,
        clientConnection={"kubeconfig": "/etc/k", "qps": 7},
        leaderElection={"leaderElect": False, "resourceName": "mine"},
        extenders=[extender],
    )
    made, notes = adapted(document)
    (kept,) = made["profiles"]
    assert kept["plugins"]["filter"] == {
        "enabled": [{"name": "NodePorts"}],
        "disabled": [{"name": "NodeVolumeLimits"}],
    }
    assert set(kept["plugins"]) == {"filter", "score"}
    assert [one["name"] for one in kept["pluginConfig"]] == ["VolumeBinding", "PodTopologySpread"]
    assert kept["percentageOfNodesToScore"] == 50
    assert made["parallelism"] == 4
    assert made["clientConnection"] == {"kubeconfig": "/etc/k", "qps": 7, "burst": 2000}
    assert made["leaderElection"]["leaderElect"] is False
    assert made["leaderElection"]["resourceName"] == "mine"
    assert made["extenders"][0] == extender
    assert len(made["extenders"]) == 3
    assert "has arguments for GpuClaimPlugin, which nobody reads" in notes[0]


def test_flags_outdo_what_was_written():
    document = a_configuration(a_profile(), clientConnection={"kubeconfig": "/a"}, leaderElection={"leaderElect": True})
    made = adapted(document, kubeconfig="/b", leader_elect=False).document
    assert made["clientConnection"]["kubeconfig"] == "/b"
    assert made["leaderElection"]["leaderElect"] is False


def test_multi_point_means_every_phase():
    made, notes = adapted(a_configuration(*(a_profile(name, "multiPoint") for name in PROFILES)))
    assert made["extenders"] == scheduler_configuration(CATALOGUE, ENDPOINT)["extenders"]
    assert notes == ()


def test_weights_of_the_user_count_against_each_other_and_what_is_off_stays_off():
    profile = a_profile()
    profile["plugins"]["score"] |= {
        "enabled": [{"name": OURS}, {"name": "NodeAffinity", "weight": 5}],
        "disabled": [{"name": "InterPodAffinity"}],
    }
    profile["plugins"]["multiPoint"] = {
        "enabled": [{"name": "TaintToleration", "weight": 2}],
        "disabled": [{"name": "PodTopologySpread"}],
    }
    made = adapted(a_configuration(profile)).document
    assert scores_of(made["profiles"][0]) == {"TaintToleration": 500, "NodeAffinity": 1250}


def test_a_star_turns_off_all_but_what_is_named():
    profile = a_profile()
    profile["plugins"]["score"] |= {"enabled": [{"name": OURS}, {"name": "NodeAffinity"}], "disabled": [{"name": "*"}]}
    score = adapted(a_configuration(profile)).document["profiles"][0]["plugins"]["score"]
    assert score["enabled"] == [{"name": "NodeAffinity", "weight": 250}]
    assert {"name": "*"} in score["disabled"]


@pytest.mark.parametrize("phase", ["score", "multiPoint"])
def test_who_else_scores_is_asked_about_every_node(phase):
    profile = a_profile()
    profile["plugins"].setdefault(phase, {"enabled": []})["enabled"] += [{"name": "NodeResourcesFit", "weight": 3}]
    made = adapted(a_configuration(profile)).document
    plugins = made["profiles"][0]["plugins"]
    assert {"name": "NodeResourcesFit", "weight": 3} in plugins[phase]["enabled"]
    assert {"name": "NodeResourcesFit"} not in plugins["score"]["disabled"]
    assert made["extenders"][0]["filterVerb"] == "filter"


def test_another_extender_is_asked_about_every_node():
    made = adapted(a_configuration(a_profile(), extenders=[{"urlPrefix": "http://other:1"}])).document
    assert made["extenders"][1]["filterVerb"] == "filter"


def test_a_profile_that_names_no_plugin_of_ours_is_left_alone_and_told_what_its_pods_with_cards_meet():
    other = {"schedulerName": "other", "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}, "filter": {}}}
    made, notes = adapted(a_configuration(*(a_profile(name) for name in PROFILES), other))
    assert made["profiles"][2] == other
    (extender,) = made["extenders"]
    verbs = [extender[f"{verb}Verb"] for verb in ("filter", "prioritize", "bind")]
    assert verbs == ["filter", "prioritize", "bind"]
    assert extender["managedResources"], "its pods without cards never meet us"
    assert notes == (
        "file: profile other does not enable GpuClaimPlugin in preFilter, filter, score, reserve, preBind; its pods"
        " that ask for cards pass there all the same, because an extender is for all profiles and does all of its work",
    )


def test_without_score_nobody_is_scored_and_weights_stay():
    phases = [phase for phase in OUR_PHASES if phase != "score"]
    made, notes = adapted(a_configuration(*(a_profile(name, *phases) for name in PROFILES)))
    (extender,) = made["extenders"]
    assert "prioritizeVerb" not in extender
    assert extender["filterVerb"] == "filter"
    assert [profile["plugins"] for profile in made["profiles"]] == [{}, {}]
    assert notes == ()


def test_phases_that_cannot_be_left_out_are_told():
    made, notes = adapted(a_configuration(a_profile("gpu-scheduler", "score"), a_profile("hami-scheduler")))
    assert len(made["extenders"]) == 2
    assert notes == (
        "file: profile gpu-scheduler does not enable GpuClaimPlugin in preFilter, filter, reserve, preBind; its pods"
        " that ask for cards pass there all the same, because an extender is for all profiles and does all of its work",
    )


def test_a_plugin_that_kube_scheduler_has_not_is_left_in_and_told():
    profile = a_profile()
    profile["plugins"]["permit"] = {"enabled": [{"name": "Coscheduling"}]}
    made, notes = adapted(a_configuration(profile, a_profile("hami-scheduler")))
    assert made["profiles"][0]["plugins"]["permit"] == {"enabled": [{"name": "Coscheduling"}]}
    assert notes == (
        'file: profile gpu-scheduler enables "Coscheduling" in permit, which the stock kube-scheduler does not have; it'
        " is left in",
    )


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (a_configuration(), "file: no profile enables GpuClaimPlugin, expected one that does; enable it in preFilter"),
        (scheduler_configuration(CATALOGUE, ENDPOINT), "file: no profile enables GpuClaimPlugin"),
        (
            a_configuration(a_profile(), extenders=[{"urlPrefix": "http://o", "bindVerb": "bind"}]),
            'file: extender http://o has bindVerb "bind", expected none, because only one extender may bind',
        ),
        (
            a_configuration(
                a_profile(), extenders=[{"urlPrefix": "http://o", "managedResources": [{"name": "nvidia.com/gpu"}]}]
            ),
            "file: extender http://o manages nvidia.com/gpu, expected no resource that ours manages",
        ),
        (
            a_configuration(a_profile("gpu-scheduler", "bind")),
            "file: profile gpu-scheduler: bind enables GpuClaimPlugin, expected it in preFilter, filter, score,",
        ),
        (a_configuration(a_profile()) | {"profiles": 7}, "file: profiles is 7, expected a list"),
        (
            a_configuration(a_profile()) | {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            "file: is a kubescheduler.config.k8s.io/v1beta3 KubeSchedulerConfiguration, expected a"
            " kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(document, sentence):
    with pytest.raises(InvalidRequest) as refused:
        adapted(document)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_the_command_reads_a_file_or_stdin_and_tells_on_stderr(tmp_path):
    text = yaml.safe_dump(a_configuration(a_profile()))
    (tmp_path / "given.yaml").write_text(text)
    from_file = CliRunner().invoke(command, ["config", "--from", str(tmp_path / "given.yaml")])
    from_stdin = CliRunner().invoke(command, ["config", "--from", "-"], input=text)
    assert (
        yaml.safe_load(from_stdin.stdout)
        == yaml.safe_load(from_file.stdout)
        == adapted(a_configuration(a_profile())).document
    )
    assert from_stdin.stderr.startswith("stdin: no profile is called hami-scheduler")


def test_the_command_elects_unless_it_is_told_otherwise():
    printed = [CliRunner().invoke(command, ["config", *flags]).stdout for flags in ([], ["--no-leader-elect"])]
    assert [yaml.safe_load(one)["leaderElection"]["leaderElect"] for one in printed] == [True, False]


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe\x00", b"a: 1\n---\nb: 1"])
def test_what_is_not_yaml_is_told_in_a_sentence(text):
    with pytest.raises(InvalidRequest, match="file: is not YAML"):
        parse_configuration(text, "file")
