"""The files for a fleet that come with the tool: what they say, and what Prometheus, bash and schemas make of them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jitter_workshop.model.evidence import Cause
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.watch import KeptStall, WatchRate, WatchReport
from jitter_workshop.report.formats import prometheus

FOLDER = Path(__file__).parents[2] / "assets" / "fleet"
RULES = FOLDER / "prometheus" / "jitter-workshop.rules.yml"
DASHBOARD = FOLDER / "grafana" / "jitter-workshop.dashboard.json"
CHECK = FOLDER / "nhc" / "jitter_workshop.nhc"
MANIFESTS = sorted((FOLDER / "kubernetes").glob("*.yaml"))
OF_NODE_EXPORTER = {"node_textfile_mtime_seconds"}


def _check(ident: str, state: Any) -> Assessment:
    return Assessment(ident, ident, state, "x", None, "", "runtime", (), "")


STATUS = prometheus.metrics_text([_check("governor", "improve"), _check("thp", "ok")], [2, 3])
WATCH = prometheus.render_watch(
    WatchReport(
        *(1, "w", "spin", None, 3, "2026-01-01T00:00:00Z", 60.0, 50.0, {"between blocks": 9}, 20_000, 3, 1),
        rates=tuple(WatchRate(ns, 3, None, None, None) for ns in (20_000, 100_000)),
        causes=(Cause("task", "kworker", 1, 50_000, 50_000, 1.0, 0, None, 1),),
        kept=(KeptStall(0, "2026-01-01T00:00:00Z", 150_000, 3, "sampler", None),),
        freezes=1,
        frozen_ns=9,
        evidence="trace",
        clock="tsc",
        ended_by="",
    )
)


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt install prometheus prometheus-node-exporter shellcheck")
    return found


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


def queries() -> list[str]:
    """Return each query of the dashboard, for all hosts."""
    found = [
        target["expr"] for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"] for target in panel["targets"]
    ]
    return [query.replace("$instance", ".*") for query in found]


def metrics_in(query: str) -> set[str]:
    return set(re.findall(r"\b(?:jitter_workshop|node)_\w+", re.sub(r'"[^"]*"', "", query)))


def written_metrics() -> set[str]:
    return set(re.findall(r"^# TYPE (\S+)", STATUS + WATCH, re.M))


def test_only_metrics_are_asked_for_that_status_and_watch_write() -> None:
    known = written_metrics() | OF_NODE_EXPORTER
    asked = {name for query in (*queries(), *(rule["expr"] for rule in rules())) for name in metrics_in(query)}
    assert asked <= known
    assert written_metrics() <= asked, "a metric that nothing shows"


def test_the_dashboard_is_whole() -> None:
    """It has what Grafana needs: a number for each panel, places that do not overlap, and a chosen source of data."""
    board = json.loads(DASHBOARD.read_text("utf-8"))
    panels = board["panels"]
    assert board["uid"]
    assert board["schemaVersion"] >= 36
    assert [variable["type"] for variable in board["templating"]["list"]] == ["datasource", "query"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & mine, panel["title"]
        cells |= mine
        assert panel["description"].endswith(".")
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_the_metrics_are_named_as_prometheus_names_them() -> None:
    done = subprocess.run(
        (program("promtool"), "check", "metrics"), input=STATUS + WATCH, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_promtool_accepts_the_alert_rules_and_their_test() -> None:
    for words in (("check", "rules", RULES.name), ("test", "rules", RULES.name.replace(".yml", ".test.yml"))):
        done = subprocess.run((program("promtool"), *words), cwd=RULES.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    tested = re.findall(
        r"alertname: (\w+)", RULES.with_name(RULES.name.replace(".yml", ".test.yml")).read_text("utf-8")
    )
    assert set(tested) == {rule["alert"] for rule in rules()}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a Prometheus with our rules. It reads a real node_exporter, which reads our two files."""
    folder = tmp_path_factory.mktemp("prometheus")
    reader, store = program("prometheus-node-exporter"), program("prometheus")
    (folder / "jitter_workshop_status.prom").write_text(STATUS, "utf-8")
    (folder / "jitter_workshop_watch.prom").write_text(WATCH, "utf-8")
    here, there = f"127.0.0.1:{_free_port()}", f"127.0.0.1:{_free_port()}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "node", "static_configs": [{"targets": [there]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), "utf-8")
    textfile = ("--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={folder}")
    files = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    commands = (
        (reader, *textfile, f"--web.listen-address={there}"),
        (store, *files, f"--web.listen-address={here}"),
    )
    with (folder / "log").open("wb") as log:
        running = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
        try:
            yield f"http://{here}"
        finally:
            for one in running:
                one.terminate()
            for one in running:
                one.wait(30)


def ask(server: str, path: str, **words: str) -> Any:
    with urllib.request.urlopen(f"{server}/api/v1/{path}?{urllib.parse.urlencode(words)}", timeout=10) as answer:
        return json.load(answer)["data"]


def within(seconds: float, server: str, query: str) -> list[Any]:
    """Return the answer to a query as soon as it is not empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            found: list[Any] = ask(server, "query", query=query)["result"]
        except OSError:
            found = []
        if found:
            return found
        time.sleep(0.2)
    return []


def test_prometheus_loads_the_rules_and_answers_each_query_of_the_dashboard(server: str) -> None:
    assert within(60, server, 'count_over_time(jitter_workshop_checks{state="improve"}[1m]) > 2')
    loaded = [rule for group in ask(server, "rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in loaded} == {rule["alert"] for rule in rules()}
    assert [rule for rule in loaded if rule["health"] == "err"] == []
    for query in queries():
        assert ask(server, "query", query=query)["result"], query


def checked(tmp_path: Path, answer: str, code: int, *words: str) -> tuple[int, str]:
    """Run the check as NHC does, with another program for jitter-workshop. Return the code and the words of ``die``."""
    fake = tmp_path / "jitter-workshop"
    (tmp_path / "answer").write_text(answer, "utf-8")
    fake.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat {tmp_path}/answer\nexit {code}\n', "utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    nhc = 'die() { printf "%s" "$2"; return 0; }; set -u; . "$0"; check_jitter_workshop "$@"'
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(("bash", "-c", nhc, CHECK, *words), capture_output=True, text=True, env=env)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_node_is_drained_for_the_named_checks_alone(tmp_path: Path) -> None:
    code, said = checked(tmp_path, STATUS, 1, "-c", "2-3", "governor", "thp")
    assert (code, said) == (1, "check_jitter_workshop: governor can be improved")
    assert (tmp_path / "asked").read_text() == "status --prometheus --cpus 2-3 -- governor thp\n"
    assert checked(tmp_path, STATUS.replace('state="improve"} 1', 'state="improve"} 0'), 0, "governor") == (0, "")
    drifted = 'jitter_workshop_check_drifted{id="thp"} 1\n'
    assert checked(tmp_path, drifted, 0, "thp") == (1, "check_jitter_workshop: thp was changed by something else")


def test_a_node_that_cannot_be_asked_is_drained_and_the_reason_is_told(tmp_path: Path) -> None:
    code, said = checked(tmp_path, "jitter-workshop: there is no tunable 'x'\nmore", 2, "x")
    assert code == 1
    assert said.endswith("2: jitter-workshop: there is no tunable 'x'")
    assert checked(tmp_path, "", 0)[0] == 1
    assert checked(tmp_path, "", 0, "-z", "thp") == (1, "check_jitter_workshop: unknown option -z")
    (tmp_path / "slow").write_text("#!/bin/sh\nexec sleep 30\n")
    (tmp_path / "slow").chmod(0o755)
    for name, words, wanted in (
        ("slow", ("-t", "0.2", "thp"), (1, "check_jitter_workshop: no answer within 0.2 s")),
        ("missing", ("thp",), (1, f"check_jitter_workshop: {tmp_path}/missing is not installed")),
        ("missing", ("-m", "no", "thp"), (0, "")),
    ):
        script = f'die() {{ printf "%s" "$2"; }}; JITTER_WORKSHOP={tmp_path}/{name}; . "$0"; check_jitter_workshop "$@"'
        done = subprocess.run(("bash", "-c", script, CHECK, *words), capture_output=True, text=True)
        assert (done.returncode, done.stdout) == wanted


def test_shellcheck_finds_nothing_in_the_check_of_a_node() -> None:
    done = subprocess.run((program("shellcheck"), CHECK), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def manifests() -> list[dict[str, Any]]:
    return [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text("utf-8"))]


def pods() -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in manifests() if "template" in one.get("spec", {})]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment in which Python finds kubernetes-validate, which has the published schemas inside."""
    if importlib.util.find_spec("kubernetes_validate") is not None:
        return dict(os.environ)
    place = tmp_path_factory.mktemp("schemas")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), "kubernetes-validate>=1.31")
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"no kubernetes-validate is to be had: {done.stderr.strip()[-200:]}")
    return {**os.environ, "PYTHONPATH": str(place)}


@pytest.mark.parametrize("version", ["1.28", "1.31"])
def test_the_manifests_fit_the_schemas_of_kubernetes(schemas: dict[str, str], version: str) -> None:
    script = (
        "import sys, yaml, kubernetes_validate as k\n"
        "for path in sys.argv[2:]:\n"
        "    for one in yaml.safe_load_all(open(path)):\n"
        "        k.validate(one, sys.argv[1], strict=True)\n"
        "        print(one['kind'])\n"
    )
    run = (sys.executable, "-c", script, version, *map(str, MANIFESTS))
    done = subprocess.run(run, capture_output=True, text=True, env=schemas)
    assert (done.stdout.split(), done.stderr) == (["Job", "Namespace", "DaemonSet"], "")


def test_pods_have_the_least_rights() -> None:
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert not pod.get("hostNetwork")
        assert not pod.get("hostIPC")
        for container in pod["containers"]:
            rights = container["securityContext"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["readOnlyRootFilesystem"] is True
            assert not rights.get("privileged")
            assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    job, daemon = pods()
    assert job["containers"][0]["securityContext"]["runAsNonRoot"] is True
    assert not job.get("hostPID")
    assert not [volume for volume in job["volumes"] if "hostPath" in volume]
    # The head of its file says why it needs more.
    assert daemon["hostPID"] is True
    assert [volume["hostPath"]["path"] for volume in daemon["volumes"] if "hostPath" in volume] == [
        "/var/lib/node_exporter/textfile_collector"
    ]
    head = (FOLDER / "kubernetes" / "status.daemonset.yaml").read_text("utf-8").partition("---")[0]
    assert {"hostPID", "hostPath", "user 0"} <= set(re.findall(r"^#   (\S+(?: 0)?)", head, re.M))


@pytest.mark.parametrize(("code", "written"), [(0, True), (1, True), (2, False)])
def test_the_hourly_pod_keeps_the_answer_and_the_code(tmp_path: Path, code: int, written: bool) -> None:
    """Its script runs here with other folders, and ends at the first sleep."""
    (container,) = pods()[1]["containers"]
    for name in ("tmp", "textfile", "bin"):
        (tmp_path / name).mkdir()
    script = (
        container["command"][-1].replace("/tmp/", f"{tmp_path}/tmp/").replace("/textfile/", f"{tmp_path}/textfile/")
    )
    said = f'#!/bin/sh\necho "$@"\nexit {code}\n'
    for name, text in (("jitter-workshop", said), ("sleep", "#!/bin/sh\nkill $PPID\n")):
        (tmp_path / "bin" / name).write_text(text, "utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    env = {one["name"]: one["value"] for one in container["env"]} | {"HOT_CPUS": "2-3"}
    env["PATH"] = f"{tmp_path}/bin:{os.environ['PATH']}"
    subprocess.run(("/bin/sh", *container["command"][1:-1], script), env=env, check=True, timeout=30)
    assert [path.name for path in (tmp_path / "textfile").iterdir()] == ["jitter_workshop_status.prom"] * written
    if written:
        answer = (tmp_path / "textfile" / "jitter_workshop_status.prom").read_text("utf-8")
        assert answer == "status --prometheus --cpus 2-3\n"
    probe = container["readinessProbe"]["exec"]["command"][-1].replace("/tmp/", f"{tmp_path}/tmp/")
    for most, ready in (("0", code == 0), ("1", code <= 1)):
        done = subprocess.run(("/bin/sh", "-c", probe), env={**env, "MOST_CODE": most})
        assert (done.returncode == 0) is ready


IN_A_POD = """
mount --bind / / && mount -o remount,ro,bind / && mount -t tmpfs none /tmp && chmod 1777 /tmp && exec setpriv "$@"
"""


def in_a_pod(rights: dict[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
    """Run this program in namespaces of its own, with the rights of a pod's container and a root that is read only."""
    if os.geteuid() or not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("only root can make a pod's namespaces, by unshare and setpriv of util-linux")
    user = str(rights.get("runAsUser", 0))
    less = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", f"--reuid={user}", f"--regid={user}")
    clean = ("env", "-i", f"PATH={os.environ['PATH']}", "HOME=/tmp", sys.executable)
    pod = ("unshare", "--mount", "--net", "sh", "-c", IN_A_POD, "sh", *less, "--clear-groups", *clean)
    where = Path(__file__).parents[2]
    tried = subprocess.run((*pod, "-c", "import jitter_workshop.cli"), cwd=where, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"the checkout is not readable in such namespaces: {tried.stderr.strip()[-200:]}")
    run = (*pod, "-m", "jitter_workshop", *words)
    return subprocess.run(run, cwd=where, capture_output=True, text=True, timeout=120)


def test_the_hourly_status_needs_no_capability_and_no_folder_to_write() -> None:
    (container,) = pods()[1]["containers"]
    done = in_a_pod(container["securityContext"], "status", "--prometheus")
    assert done.returncode in (0, 1), done.stderr
    assert "jitter_workshop_checks{" in done.stdout


@pytest.mark.parametrize(("condition", "code"), [("stall < 10s for 1s", 0), ("stall < 100ns for 1s", 1)])
def test_the_job_ends_with_the_verdict_and_needs_no_rights(condition: str, code: int) -> None:
    (container,) = pods()[0]["containers"]
    words = [condition if word.startswith("stall") else word for word in container["command"][1:]]
    done = in_a_pod(container["securityContext"], *words)
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["verdict"] == ("rejected" if code else "accepted")


def test_the_job_has_options_and_a_condition_of_watch() -> None:
    import argparse

    from jitter_workshop.commands import watch
    from jitter_workshop.stats.acceptance import parse_condition

    (container,) = pods()[0]["containers"]
    parser = argparse.ArgumentParser()
    watch.add_arguments(parser)
    asked = parser.parse_args(container["command"][2:])
    condition = parse_condition(asked.accept)
    deadline = next(one for one in manifests() if one["kind"] == "Job")["spec"]["activeDeadlineSeconds"]
    assert condition.for_ns / 1e9 < deadline
