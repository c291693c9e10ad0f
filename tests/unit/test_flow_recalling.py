"""Test recall questions at a chapter's start: which chapters they are about, and what the session keeps of them."""

from __future__ import annotations

import dataclasses
import json

import pytest

from jitter_workshop.course.alike import recalled_twice
from jitter_workshop.course.loader import builtin_course, load_course, read_course
from jitter_workshop.course.recall import WAITS
from jitter_workshop.flow.chapters import recalling
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.session import ChapterProgress, RecallBoxes
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import recall as words
from jitter_workshop.presenter.course.path import ONLY_READ, subject_told
from tests.fakes import FakeWorkshop, open_workshop
from tests.lessonverbs import built_in_chapter


@pytest.fixture
def workshop() -> FakeWorkshop:
    return open_workshop()


def finish(workshop: FakeWorkshop, *chapters: str) -> None:
    for chapter in chapters:
        workshop.context.save_progress(chapter, ChapterProgress(step="explain", done=True))


def test_questions_are_about_other_chapters_that_are_done(workshop: FakeWorkshop) -> None:
    for chapter in ("baseline", "migration", "pinning"):
        assert recalling.questions_to_ask(workshop, workshop.walk(chapter)) == ()
    finish(workshop, "pinning")
    assert recalling.questions_to_ask(workshop, workshop.walk("pinning")) == ()
    finish(workshop, "migration", "baseline")
    workshop.context.save_progress("pinning", ChapterProgress())
    found = recalling.questions_to_ask(workshop, workshop.walk("pinning"))
    assert [one.key.partition("/")[0] for one in found] == ["migration", "baseline"]


def test_a_chapter_that_was_only_read_asks_nothing_and_has_no_full_dot() -> None:
    """No run of the second short hunt comes with the course; of 'Pinning' the counts of another machine do."""
    workshop = open_workshop(recorded_host("lab-stock").root, course=builtin_course())
    finish(workshop, "second-hunt", "pinning", "make-it-last")
    only_read = {entry.chapter_id: entry for entry in workshop.path() if entry.only_read}
    assert set(only_read) == {"second-hunt"}
    assert only_read["second-hunt"].done
    assert ONLY_READ in subject_told(only_read["second-hunt"])
    found = recalling.questions_to_ask(workshop, workshop.walk("idle-states"))
    asked = {one.key.partition("/")[0] for one in found}
    assert "pinning" in asked
    assert "second-hunt" not in asked
    signs = {}
    for ident in ("second-hunt", "pinning"):
        walk = workshop.walk(ident)
        lines = [line.plain for line in chapter_view.explain_page(walk, (), walk.chapter.learnt, 80)]
        signs[ident] = lines[lines.index("WHAT YOU LEARNT") + 1][1]
    assert signs == {"second-hunt": "•", "pinning": "✓"}


def test_a_path_that_differs_from_the_course_leaves_no_done_chapter_out(workshop: FakeWorkshop) -> None:
    """A host that cannot show a chapter has it late: what stands behind it in the course is done by then."""
    finish(workshop, "baseline", "pinning")
    found = recalling.questions_to_ask(workshop, workshop.walk("migration"))
    assert [one.key.partition("/")[0] for one in found] == ["pinning", "baseline"]


def test_they_come_once_at_the_first_step_and_again_if_the_chapter_begins_anew(workshop: FakeWorkshop) -> None:
    finish(workshop, "baseline")
    walk = workshop.walk("migration")
    assert len(recalling.questions_to_ask(workshop, walk)) == 2
    walk.go("predict")
    assert recalling.questions_to_ask(workshop, walk) == ()
    walk.go("look")
    recalling.record_asked(workshop, walk)
    assert recalling.questions_to_ask(workshop, walk) == ()
    assert walk.current == "look"
    walk.restart()
    assert len(recalling.questions_to_ask(workshop, walk)) == 2


def test_a_missed_question_comes_back_in_the_next_chapter_and_a_right_one_later(workshop: FakeWorkshop) -> None:
    finish(workshop, "baseline")
    walk = workshop.walk("migration")
    first, second = recalling.questions_to_ask(workshop, walk)
    assert recalling.judge_recall(workshop, first, first.question.right) == recalling.RecallResult(True, WAITS[1])
    wrong = (second.question.right + 1) % len(second.question.answers)
    assert recalling.judge_recall(workshop, second, wrong) == recalling.RecallResult(False, 1)
    recalling.record_asked(workshop, walk)
    finish(workshop, "migration")
    found = recalling.questions_to_ask(workshop, workshop.walk("pinning"))
    assert found[0].key == second.key
    assert first.key not in [one.key for one in found]


def test_answers_are_in_one_order_for_a_visit_and_the_right_one_has_no_favourite_place(workshop: FakeWorkshop) -> None:
    finish(workshop, "baseline")
    walk = workshop.walk("migration")
    baseline = workshop.course.chapter("baseline")
    assert baseline is not None
    places: set[int] = set()
    for visits in range(30):
        workshop.context.save(dataclasses.replace(workshop.context.session, recall=RecallBoxes(visits=visits)))
        found = recalling.questions_to_ask(workshop, walk)
        assert found == recalling.questions_to_ask(workshop, walk)
        for one in found:
            written = next(q for q in baseline.recall if one.key.endswith(f"/{q.id}"))
            assert sorted(one.question.answers) == sorted(written.answers)
            assert one.question.answers[one.question.right] == written.answers[written.right]
        places.add(found[0].question.right)
    assert len(places) >= 3


def test_the_session_on_the_disk_keeps_the_boxes_and_an_old_one_has_none(workshop: FakeWorkshop) -> None:
    finish(workshop, "baseline")
    walk = workshop.walk("migration")
    one = recalling.questions_to_ask(workshop, walk)[0]
    recalling.judge_recall(workshop, one, one.question.right)
    recalling.record_asked(workshop, walk)
    file = workshop.context.handle.folder / "session.json"
    kept = json.loads(file.read_text())
    assert kept["recall"] == {"visits": 1, "cards": {one.key: {"box": 2, "due": WAITS[1]}}}
    del kept["recall"]
    for progress in kept["chapters"].values():
        progress.pop("recalled", None)
    name = workshop.context.session.name
    workshop.close()
    file.write_text(json.dumps(kept))
    again = FakeWorkshop.open(name)
    assert again.context.session.recall == RecallBoxes()
    assert again.context.progress("baseline").done
    assert not again.context.progress("migration").recalled
    again.close()


def test_the_words_tell_right_from_wrong_and_when_the_question_returns(workshop: FakeWorkshop) -> None:
    finish(workshop, "baseline")
    one = recalling.questions_to_ask(workshop, workshop.walk("migration"))[0]
    open_lines = "\n".join(line.plain for line in words.question(one, 1, 2, 76))
    assert "1 of 2" in open_lines
    assert "✓" not in open_lines
    told = "\n".join(line.plain for line in words.recall_outcome_lines(one, recalling.RecallResult(True, 4), 76))
    assert "✓" in told
    assert "after 4 chapters" in told
    wrong = (one.question.right + 1) % len(one.question.answers)
    shown = [line.plain for line in words.question(one, 1, 2, 76, wrong)]
    assert sum(line.startswith("✗") for line in shown) == 1
    assert sum(line.startswith("✓") for line in shown) == 1
    missed = "\n".join(line.plain for line in words.recall_outcome_lines(one, recalling.RecallResult(False, 1), 76))
    assert f"✗ The answer is {one.question.right + 1}." in missed
    assert "next chapter" in missed


CHAPTERS = load_course().chapters


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: str(chapter.id))
def test_each_built_in_chapter_has_questions_that_fit_a_small_screen(chapter: Chapter) -> None:
    assert 2 <= len(chapter.recall) <= 3
    for question in chapter.recall:
        one = recalling.Asked("key", chapter.title, question)
        lines = [
            *words.question(one, 1, 2, 64, 0),
            *words.recall_outcome_lines(one, recalling.RecallResult(False, 1), 64),
        ]
        assert len(lines) <= 18, (question.id, len(lines))


def test_the_right_answers_of_the_built_in_course_are_not_at_one_place() -> None:
    places = [question.right for chapter in CHAPTERS for question in chapter.recall]
    for place in range(3):
        assert len(places) // 5 <= places.count(place) <= len(places) // 2


GOOD = """[[recall]]
id = "one"
question = "Which one?"
answers = ["this", "that", "both"]
right = 2
explanation = "That one. It is that."

"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"this", "that", "both"', '"this", "that"', "three or four different answers"),
        ('"this", "that", "both"', '"this", "that", "this"', "three or four different answers"),
        ('"this", "that", "both"', '"a", "b", "c", "d", "e"', "three or four different answers"),
        ("right = 2", "right = 4", "no answer 4"),
        ("right = 2", "right = 0", "from 1 to 4"),
        ("right = 2\n", "", "right is missing"),
        ("It is that.", "It is. That.", "at most two sentences"),
        ('id = "one"', 'id = "One"', "small letters"),
        ('id = "one"', 'id = "one"\nhint = "x"', "unknown key 'hint'"),
    ],
)
def test_a_bad_question_is_a_mistake(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str, message: str
) -> None:
    folder = built_in_chapter("17-hunt", tmp_path_factory.mktemp("course") / "c")
    lesson = folder / "17-hunt" / "lesson.toml"
    before, _, rest = lesson.read_text().partition("[[recall]]")
    tail = "[[by_hand]]" + rest.split("[[by_hand]]", 1)[1]
    lesson.write_text(before + GOOD + tail)
    course = read_course(folder)
    assert course.problems.found == []
    assert course.chapters[0][1].recall[0].right == 1
    lesson.write_text(before + GOOD.replace(old, new) + tail)
    problems = read_course(folder).problems.found
    assert len(problems) == 1
    assert message in problems[0].message
    assert problems[0].line >= len(before.split("\n"))


def test_two_questions_of_a_chapter_have_two_ids_and_two_chapters_two_questions() -> None:
    assert list(recalled_twice(CHAPTERS)) == []
    first = CHAPTERS[0]
    other = dataclasses.replace(CHAPTERS[1], recall=(*CHAPTERS[1].recall, first.recall[1]))
    assert list(recalled_twice([first, other])) == [(1, len(CHAPTERS[1].recall), first)]
