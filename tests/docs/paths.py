#!/usr/bin/env python3
"""Checks the links, paths in code spans and public headers that the documents name."""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import layers  # noqa: E402 (the folder comes first)

LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
SPAN = re.compile(r"`([^`\n]+)`")
HEADER = re.compile(r"<rill/([\w./]+)>")
OUTSIDE = ("http://", "https://", "mailto:")
# A path has a slash and begins in the tree, or is the file name of a source or document.
PATH = re.compile(r"(?:[\w.*-]+/)+[\w.*-]*|[\w*-]+\.(?:h|cpp|md|py)")
TOP = {path.name for path in ROOT.iterdir() if path.name not in (".git", "build")}


PUBLIC = layers.read_tree(ROOT).public
NAMES = {path.name for room in layers.ROOMS for path in (ROOT / room).rglob("*")}


def breaches(document):
    """Yields (line, problem)."""
    text = document.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.MULTILINE | re.DOTALL)
    for match in LINK.finditer(prose):
        if not match[1].startswith(OUTSIDE) and not (document.parent / match[1]).exists():
            yield layers.line_of(text, match.start()), f"the link {match[1]} is broken"
    for match in SPAN.finditer(prose):
        for word in filter(PATH.fullmatch, re.split(r"[\s,:]+", match[1])):
            in_tree = word.split("/")[0] in TOP
            if (in_tree or "/" not in word) and not exists(word, document.parent):
                yield layers.line_of(text, match.start()), f"{word} does not exist"
    for match in HEADER.finditer(text):
        if match[1] not in PUBLIC:
            yield layers.line_of(text, match.start()), f"<rill/{match[1]}> is not a public header"


def exists(word, folder):
    """Whether a path or glob matches a file. A name without folders may be anywhere in the tree."""
    if "/" not in word and fnmatch.filter(NAMES, word):
        return True
    return any(any(base.glob(word.rstrip("/"))) for base in (ROOT, folder))


def main():
    documents = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "tests").rglob("*.md"))]
    found = [(document, *breach) for document in documents for breach in breaches(document)]
    for document, line, problem in found:
        print(f"{document.relative_to(ROOT)}:{line}: {problem}")
    print(f"{len(documents)} documents, {len(found)} broken references")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
