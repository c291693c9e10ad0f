"""The JSON of a report: its schema is that of the types, and what is written fits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.model.report import ReportDocument
from jitter_workshop.report.formats import json_document
from tests import madereports, reportschema

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def plain(document: ReportDocument) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json_document.document_as_json(document))
    return value


def test_the_schema_that_is_handed_out_is_that_of_the_types() -> None:
    said = "the types changed: run 'python -m tests.reportschema', and say in docs/report.md what is new"
    assert reportschema.ASSET.read_text(encoding="utf-8") == reportschema.text(), said


@pytest.mark.parametrize("document", [madereports.rich(), madereports.bare()], ids=["rich", "bare"])
def test_a_report_fits_its_schema(document: ReportDocument) -> None:
    whole = json.loads(reportschema.ASSET.read_text(encoding="utf-8"))
    assert reportschema.problems(plain(document), whole, whole) == []


def test_each_field_that_breaks_the_schema_is_found() -> None:
    whole = reportschema.schema()
    value = plain(madereports.rich())
    del value["title"]
    value["format_version"] = True
    value["runs"][0]["histogram"]["count"] = "many"
    value["culprits"][0]["evidence"] = "gossip"
    value["imports"] = {}
    found = reportschema.problems(value, whole, whole)
    assert {one.partition(":")[0] for one in found} == {
        "$.title",
        "$.format_version",
        "$.runs[0].histogram.count",
        "$.imports",
        "$.culprits[0].evidence",
    }
    assert len(found) == 5


def test_hostile_names_stay_within_their_strings() -> None:
    text = json_document.document_as_json(madereports.rich())
    assert text.isascii()
    assert "\x1b" not in text
    labels = {run["label"] for run in json.loads(text)["runs"]}
    assert set(madereports.HOSTILE) <= labels


def test_every_field_stands_in_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, one in reportschema.schema()["$defs"].items():
        heading = f"### {name}\n"
        assert heading in page
        section = page.partition(heading)[2].partition("\n### ")[0].partition("\n## ")[0]
        missing = [field for field in one["properties"] if f"`{field}`" not in section]
        assert missing == [], f"{name} in docs/report.md lacks {missing}"
    for name in (
        "ReportDocument",
        "ReportedRun",
        "ReportedChapter",
        "ReportedChange",
        "HostEvent",
        "RunCauses",
        "Proof",
    ):
        assert f"### {name}\n" in page
