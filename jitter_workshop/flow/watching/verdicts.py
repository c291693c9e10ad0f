"""Write a watch's verdict as JSON and JUnit XML, sign it, and verify verdict files. Signatures are made and checked by
ssh-keygen."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jitter_workshop import __version__
from jitter_workshop.errors import HostError, UsageError, WorkshopError, reason
from jitter_workshop.flow.watching.tally import Tally, iso, without_times
from jitter_workshop.model.codec import from_plain, parse_object, to_plain
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, MESSAGE, MOST_ENTRIES, NAME, PATH, WORD, clean
from jitter_workshop.model.watch import FORMAT_VERSION, KeptStall, WatchReport, WatchVerdict
from jitter_workshop.session import files
from jitter_workshop.stats.acceptance import ACCEPTED, REJECTED, Acceptance, Judged, judge_condition, parse_condition
from jitter_workshop.stats.exact import rate_limits
from jitter_workshop.stats.scale import nice_ns

FILE, JUNIT, SIGNATURE = "verdict.json", "verdict.xml", ".sig"
NAMESPACE = "jitter-workshop"
"""The namespace of a signature. A signature that was made for another purpose is not accepted."""
MOST_WORST = 10
GOOD, NONE, BAD = "good", "none", "bad"
_LIMIT_S = 30.0
_HOUR_S = 3600


def verdict_of(
    report: WatchReport, condition: Acceptance, tally: Tally, host: dict[str, Any], facts: dict[str, Any]
) -> WatchVerdict:
    """Return the verdict on a watch. ``condition``: the condition that the watch must meet. ``host``: the summary of
    the host. ``facts``: the verdict's fields ``applied`` and ``checks``."""
    count = tally.counts[condition.limit_ns]
    judged = judge_condition(condition, count, tally.watched_ns)
    low, high = _per_hour(count, tally.watched_ns)
    started = report.started_at
    return WatchVerdict(
        format_version=FORMAT_VERSION,
        accept=condition.text,
        verdict=judged.verdict,
        reason=judged.reason,
        limit_ns=condition.limit_ns,
        most=condition.most,
        for_ns=condition.for_ns,
        stalls=count,
        per_hour_low=low,
        per_hour_high=high,
        watched_ns=tally.watched_ns,
        not_watched_ns=dict(tally.not_watched),
        started_at=started,
        ended_at=_now(),
        duration_s=report.duration_s,
        ended_by=report.ended_by,
        watching=report.watching,
        cpu=report.cpu,
        evidence=report.evidence,
        worst=without_times(report.kept[:MOST_WORST]),
        causes=report.causes,
        host=host,
        made_by=f"jitter-workshop {__version__}",
        notes=dict(report.notes),
        **facts,
    )


def _per_hour(count: int, watched_ns: int) -> tuple[float | None, float | None]:
    limits = rate_limits(count, watched_ns / 1e9)
    return (None, None) if limits is None else (limits[0] * _HOUR_S, limits[1] * _HOUR_S)


def _now() -> str:
    import time

    return iso(time.time())


def write_verdict(folder: Path, verdict: WatchVerdict, key: Path | None) -> Path:
    """Write a verdict into a watch's folder, as JSON and as JUnit's XML, and sign the JSON with ``key``. Return the
    JSON's path. Raise SessionError if a file cannot be written, HostError if ssh-keygen cannot sign."""
    path = folder / FILE
    files.write_whole(path, files.json_bytes(to_plain(verdict)))
    files.write_whole(folder / JUNIT, junit(verdict))
    if key is not None:
        files.write_whole(path.with_name(path.name + SIGNATURE), sign_content(path.read_bytes(), key))
    return path


def junit(verdict: WatchVerdict) -> bytes:
    """Return a verdict as a JUnit test suite with one test. If the watch was rejected, the test is a failure. If the
    watch has no verdict, the test is an error. The same verdict always gives the same bytes."""
    failed, unknown = verdict.verdict == REJECTED, verdict.verdict is None
    seconds = f"{verdict.duration_s:.3f}"
    top = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        top,
        "testsuite",
        name="jitter-workshop watch",
        tests="1",
        failures=str(int(failed)),
        errors=str(int(unknown)),
        time=seconds,
        timestamp=clean(verdict.started_at, NAME),
        hostname=clean(verdict.host.get("name", ""), NAME),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("kernel", verdict.host.get("kernel", "")),
        ("watched_ns", verdict.watched_ns),
        ("not_watched_ns", sum(verdict.not_watched_ns.values())),
        ("stalls", verdict.stalls),
        ("per_hour_high", verdict.per_hour_high),
        ("made_by", verdict.made_by),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=clean(value, MESSAGE))
    case = ElementTree.SubElement(
        suite, "testcase", classname="jitter-workshop.watch", name=clean(verdict.accept, NAME), time=seconds
    )
    if failed or unknown:
        kind = "failure" if failed else "error"
        told = ElementTree.SubElement(case, kind, message=clean(verdict.reason, MESSAGE))
        told.text = "\n".join(_line(one) for one in verdict.worst) if failed else clean(verdict.ended_by, MESSAGE)
    ElementTree.indent(top)
    body: bytes = ElementTree.tostring(top, "utf-8", xml_declaration=True)
    return body + b"\n"


def _line(stall: KeptStall) -> str:
    parts = (stall.parts or ())[:MOST_ENTRIES]
    causes = ", ".join(f"{clean(p.kind, WORD)} {clean(p.name, ID)} {nice_ns(p.ns)}" for p in parts)
    return f"{clean(stall.at, NAME)}: {nice_ns(stall.duration_ns)}: {causes or clean(stall.why_no_parts, MESSAGE)}"


# -- signatures --------------------------------------------------------------------------------------------------------


def check_key(key: Path) -> None:
    """Raise HostError if ssh-keygen cannot sign with this key. Call this function before the watch, because after hours
    this error would come too late."""
    sign_content(b"jitter-workshop\n", key)


def sign_content(content: bytes, key: Path) -> bytes:
    """Return ssh-keygen's signature of ``content``. Raise HostError if ssh-keygen cannot sign."""
    code, signature, said = _keygen("sign", "-f", str(key), "-n", NAMESPACE, given=content)
    if code or not signature.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise HostError(
            f"ssh-keygen cannot sign with {clean(key, PATH)}: {said}",
            "name a private key without a passphrase, or a public key that ssh-agent holds",
        )
    return signature


def _keygen(verb: str, *words: str, given: bytes) -> tuple[int, bytes, str]:
    """Run ``ssh-keygen -Y``. Return its exit code, its output, and its last line on standard error."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise HostError("ssh-keygen was not found", "install openssh-client")
    environment = {**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [program, "-Y", verb, *words],
            input=given,
            capture_output=True,
            timeout=_LIMIT_S,
            env=environment,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError("ssh-keygen did not answer in time") from None
    except OSError as error:
        raise HostError(f"ssh-keygen cannot be started: {reason(error)}") from error
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return done.returncode, done.stdout, clean(lines[-1] if lines else "", MESSAGE)


# -- verifying ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verified:
    """Hold the result of a check of a verdict file.

    - ``signature``: ``good``, ``none`` or ``bad``.
    - ``signed_by``: the signer's name, if the user gave a list of signers. Otherwise the signer's key.
    - ``problems``: a sentence about each error in the file; () if there is none.
    """

    file: str
    verdict: str | None
    accept: str
    reason: str
    signature: str
    signed_by: str
    problems: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        return self.verdict == ACCEPTED and not self.problems


def check_verdict(path: Path, signers: Path | None = None) -> Verified:
    """Check a verdict file of ``watch``. The verdict must agree with the figures in the same file. If the folder has an
    XML file, the verdict must also agree with that file. A signature must be valid. ``signers``: a file of allowed
    signers (ssh-keygen(1)). Without this file, a signature with any key is accepted, and so is an unsigned verdict.
    Raise UsageError if the file is not a verdict."""
    try:
        with files.open_regular(path) as file:
            content = file.read(files.MAX_JSON_BYTES)
        verdict = from_plain(WatchVerdict, parse_object(content))
    except OSError as error:
        raise UsageError(f"{clean(path, PATH)} cannot be read: {reason(error)}") from error
    except ValueError as error:
        raise UsageError(f"{clean(path, PATH)} is not a verdict file of 'watch': {clean(error, MESSAGE)}") from error
    problems = [*_contradictions(verdict)]
    beside = path.with_name(JUNIT)
    if beside.is_file() and beside.read_bytes() != junit(verdict):
        problems.append(f"{JUNIT} in the same folder does not have the same verdict")
    signature, by, why = _signature(path, content, signers)
    if why:
        problems.append(why)
    return Verified(
        *(str(path), verdict.verdict, clean(verdict.accept, NAME), clean(verdict.reason, MESSAGE)),
        *(signature, by, tuple(problems)),
    )


def _contradictions(verdict: WatchVerdict) -> Sequence[str]:
    """Return a sentence for each contradiction between a verdict and its own figures."""
    try:
        condition = parse_condition(verdict.accept)
    except WorkshopError as error:
        return [error.message]
    found = []
    if (condition.limit_ns, condition.most, condition.for_ns) != (verdict.limit_ns, verdict.most, verdict.for_ns):
        found.append("the verdict's numbers differ from those in its condition")
    judged = judge_condition(condition, verdict.stalls, verdict.watched_ns)
    if judged != Judged(verdict.verdict, verdict.reason):
        found.append(f"the file's own figures give the verdict {judged.verdict or 'none'}: {judged.reason}")
    if _per_hour(verdict.stalls, verdict.watched_ns) != (verdict.per_hour_low, verdict.per_hour_high):
        found.append("the limits of the rate per hour do not follow from the file's figures")
    return found


def _signature(path: Path, content: bytes, signers: Path | None) -> tuple[str, str, str]:
    """Check the signature of a file. Return its state, the signer, and a problem or "". The signer is a name if
    ``signers`` is given, otherwise the key.
    """
    signature = path.with_name(path.name + SIGNATURE)
    if not signature.is_file():
        return NONE, "", "" if signers is None else "the file is not signed"
    words = ("-n", NAMESPACE, "-s", str(signature))
    if signers is None:
        code, out, said = _keygen("check-novalidate", *words, given=content)
        key = clean(out.decode(errors="replace").strip().rpartition(" key ")[2], NAME)
        return (BAD, "", f"the file's signature does not fit: {said}") if code else (GOOD, key, "")
    code, out, said = _keygen("find-principals", "-s", str(signature), "-f", str(signers), given=b"")
    names = out.decode(errors="replace").split()
    if code or not names:
        return BAD, "", "none of the allowed signers signed the file"
    code, _, said = _keygen("verify", "-f", str(signers), "-I", names[0], *words, given=content)
    return (BAD, "", f"the file's signature does not fit: {said}") if code else (GOOD, clean(names[0], NAME), "")
