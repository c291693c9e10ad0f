"""Find what is not plain English, as far as a machine can tell: ``python scripts/prose.py [PATH…]``.

A docstring begins with what the code does, and the note below an assignment with what it is, not with a question word.
The same holds for a comment in Python, C and shell. No sentence of a document, a lesson, a comment, a docstring or a
note has a clause such as "What has no line" as its subject; questions, headings and titles in italics or bold may begin
so. A program is not called somebody. The name of a test is a plain statement, without a word such as "who" or "what".
The sentence of a docstring on errors is an imperative with the condition: "Raise HostError if the file cannot be read."
A test of a whole program asserts the part of a message that identifies it, not the sentence: the sentence is asserted
once, in the unit test of the module that makes it. The folders are in pyproject.toml, ``[tool.prose]``. Exit code 1:
there is a finding; each is printed with file and line.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
QUESTION = re.compile(r"(What|Whether|Who|Whom|Whose|Where|How|Why|Which)\b")
# A sentence that begins with such a clause, up to its end. It stands at the beginning of a line or behind the end of
# another one. A line break ends it only if an empty line, a list's next entry or a table follows.
CLAUSE = re.compile(
    r"(?:^(?:\s*(?:[-*>]|\d+\.)\s+|[ \t]*)|[.!?;:]\)?\s+)"
    r"((?:What|Whatever|Whether|Who|Whoever|Whom|Whose|How|Why|Which)\b)"
    r"(?:[^.?!|\n]|\.(?=\S)|\n(?!\s*\n|\s*[-*#|>]))*(\??)",
    re.MULTILINE,
)
FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#.*", re.MULTILINE)
# Comments with their signs. Python and shell: lines without code between them are one comment.
HASHED = re.compile(r"^[ \t]*#+ .*(?:\n[ \t]*#+ .*)*|(?<=[ \t])#+ .*", re.MULTILINE)
COMMENTS = {".py": HASHED, ".sh": HASHED, ".c": (STARRED := re.compile(r"/\*[\s\S]*?\*/|//.*")), ".h": STARRED}
SIGNS = re.compile(r"^[ \t]*(?:#+|/\*+|//|\*)[ \t]", re.MULTILINE)
PEOPLE = re.compile(r"(?<!`)\b(nobody|whoever|whatever of|somebody's|nobody's|anybody's|what of it)\b", re.IGNORECASE)
# Words that make a riddle of a test's name: such a name says "who" for a program, or has a clause for a noun.
RIDDLES = {"who", "whoever", "what", "whatever", "nobody", "somebody", "anybody", "everybody"}
# "Raises X if …", or a sentence that ends with an error: "Raise X.", "Raise X if …, and Y."
ERROR = r"(?:``)?(?:\w+\.)?[A-Z]\w*[a-z]\w*(?:``)?"
ERRORS = re.compile(rf"(?:^|[.:;)] )(?:Raises\b|Raise (?:(?:[^.;]|\.\S)*(?:,|\band|\bor) )?{ERROR}(?=[.;]|$))")
# The rings whose tests see messages that another module makes, and the most words of one that a test asserts.
RINGS = ("functional", "outside", "lab", "soak", "native")
MOST_WORDS = 8
# A word has two letters or more: a mark and a number are no words, a path and an option are one word each.
WORD = re.compile(r"[^\W\d_]{2}")
# Texts of many words that are no sentences: a page, a row of a table, a command line.
NO_SENTENCE = re.compile(
    r".*\n"
    r"|.*\w\S*(?: {2,}|\t| [|│] )\S"
    r"|\$ |(?:sudo )?jitter-workshop [^.:;,]* --\w|.* (?:&&|\|\|) \S"
)
SUFFIXES = (".py", ".md", ".toml", ".c", ".h", ".sh")
# Fields of a statement that hold further statements: definitions and asserts are found without a look at each
# expression.
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and each statement in it, at any depth."""
    todo = [tree]
    while todo:
        yield (node := todo.pop())
        for name in BODIES:
            todo += below if isinstance(below := getattr(node, name, None), list) else ()


def asserted_sentences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and reason for each sentence of more than MOST_WORDS words in an ``assert``.

    A sentence may begin with a mark, a number or a quote, and may name a path or a setting. A page, a row of a table
    and a command line are no sentences.
    """
    for node in statements(tree):
        for part in ast.walk(node.test) if isinstance(node, ast.Assert) else ():
            text = part.value.strip() if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
            words = sum(1 for word in text.split() if WORD.search(word))
            if words > MOST_WORDS and not NO_SENTENCE.match(text):
                yield part.lineno, f"an assert has a sentence of {words} words: assert what identifies it"


def clauses(text: str) -> Iterator[tuple[int, str]]:
    """Yield line (from 0) and first word of each sentence whose subject is a clause. A question is none of them."""
    for found in CLAUSE.finditer(text):
        if not found[2]:
            yield text.count("\n", 0, found.start(1)), found[1]


def question_words(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield line and reason for comments, and sentences of comments and documents, that begin with a question word."""
    if suffix in (".md", ".toml"):
        shown = HEADING.sub("", FENCED.sub(lambda code: "\n" * code[0].count("\n"), text))
        for line, word in clauses(shown):
            yield line + 1, f"a sentence has a clause with '{word}' as its subject"
    for found in COMMENTS[suffix].finditer(text) if suffix in COMMENTS else ():
        comment, first = SIGNS.sub("", found[0]), text.count("\n", 0, found.start()) + 1
        begins = QUESTION.match(comment)
        if begins:
            yield first, f"a comment begins with '{begins[0]}'"
        for line, word in clauses(comment):
            if line or not begins:
                yield first + line, f"a sentence of a comment begins with '{word}'"


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and reason for each docstring and each text of a Python file, or each line of a document."""
    text = path.read_text()
    yield from question_words(path.suffix, text)
    if path.suffix not in (".py", ".sh"):
        for number, line in enumerate(text.splitlines() if PEOPLE.search(text) else (), start=1):
            if found := PEOPLE.search(line):
                yield number, f"'{found[0]}'"
        return
    for number, line in enumerate(text.splitlines() if PEOPLE.search(text) else (), start=1):
        comment = re.search(r"(?:^|\s)# (.*)", line)
        if comment and (found := PEOPLE.search(comment[1])):
            yield number, f"a comment says '{found[0]}'"
    if path.suffix == ".sh":
        return
    tree = ast.parse(text)
    shown = REPOSITORY / "tests" not in path.parents  # texts in tests are data, such as a user of the name nobody
    if path.is_relative_to(REPOSITORY / "tests") and path.relative_to(REPOSITORY / "tests").parts[0] in RINGS:
        yield from asserted_sentences(tree)
    for node in statements(tree):
        alone = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
        if isinstance(alone, str) and (found := QUESTION.match(alone)):
            yield node.lineno, f"a docstring or a note begins with '{found[0]}'"
        for line, word in clauses(alone) if isinstance(alone, str) else ():
            if line or not QUESTION.match(alone):
                yield (
                    node.lineno + line,
                    f"a sentence of a docstring or a note has a clause with '{word}' as its subject",
                )
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node)
            name = getattr(node, "name", "")
            if name.startswith("test_") and (riddle := RIDDLES & set(name.split("_"))):
                yield getattr(node, "lineno", 1), f"the name of a test says '{min(riddle)}': write a plain statement"
            if said and not shown and (found := PEOPLE.search(said)):
                yield getattr(node, "lineno", 1), f"a docstring says '{found[0]}'"
            if said and (found := ERRORS.search(" ".join(said.split()))):
                yield getattr(node, "lineno", 1), f"a docstring says '{found[0].lstrip('.:;) ')}': write 'Raise X if …'"
    # A text may run over several literals or begin after an escape. Most files need no look at each of their texts.
    flat = re.sub(r"\\[a-z]", " ", re.sub(r"""["'][\s()]*[fr]*["']""", "", text))
    for node in ast.walk(tree) if shown and PEOPLE.search(flat) else ():
        text_of = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text_of, str) and (found := PEOPLE.search(text_of)):
            yield getattr(node, "lineno", 1), f"'{found[0]}'"


def main() -> int:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["prose"]
    tops = [REPOSITORY / name for name in sys.argv[1:] or settings["folders"]]
    files = [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*.*")))]
    found = 0
    for path in files:
        for line, reason in findings(path) if path.suffix in SUFFIXES and path != Path(__file__) else ():
            print(f"{path.relative_to(REPOSITORY)}:{line}: {reason}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
