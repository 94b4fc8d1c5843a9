#!/usr/bin/env python3
"""The book of the documentation.

    book.py gather FOLDER     copies the pages that docs/SUMMARY.md names into FOLDER, as mdBook wants them
    book.py check FOLDER      checks the links of a built book: files and anchors within it; exit code 1 if one is broken

Pages stay where they are in the repository, so that their links work there. In the book, links to
what is no page lead to the repository.
"""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/regraft/regraft/blob/main"
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
"""A link or an image of Markdown: its target, and the anchor in it."""


def pages():
    """Paths of all pages, relative to the repository, in the order of the summary."""
    targets = [target for _, target, _, _ in LINK.findall((ROOT / "docs/SUMMARY.md").read_text())]
    return [(ROOT / "docs" / target).resolve().relative_to(ROOT) for target in targets]


def gather(folder):
    """Copies pages and their images, with links to anything else led to the repository."""
    source = folder / "src"
    listed = pages()
    for page in listed:

        def led(link, page=page):
            target, anchor = link[2], link[3] or ""
            if urlsplit(target).scheme:
                return link[0]
            path = (ROOT / page.parent / target).resolve()
            if not path.exists():
                sys.exit(f"book: {page}: no file {target}")
            relative = path.relative_to(ROOT)
            if relative in listed:
                # In the book, it is the index of its folder.
                return f"]({re.sub('README.md$', 'index.md', target)}{anchor})"
            if path.suffix == ".svg":
                (source / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, source / relative)
                return link[0]
            return f"](%s/{relative}{anchor})" % REPOSITORY

        place = source / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(LINK.sub(led, (ROOT / page).read_text()))
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    paths = iter(listed)
    (source / "SUMMARY.md").write_text(LINK.sub(lambda _: f"]({next(paths)})", summary))
    shutil.copy(ROOT / "docs/book.toml", folder / "book.toml")
    print(f"book: {len(listed)} pages")


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def check(folder):
    """Prints broken links. Returns how many there are."""
    found = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    if not found:
        sys.exit(f"book: no page in {folder}")
    broken = links = 0
    for path, page in found.items():
        # Its links are relative to the place of the page that was not found.
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in found and anchor not in found[target].anchors):
                print(f"book: {path.relative_to(folder)}: nothing is at {link}")
                broken += 1
    print(f"book: {links} links in {len(found)} files, {broken} broken")
    return broken


def main():
    match sys.argv[1:]:
        case ["gather", folder]:
            gather(Path(folder).resolve())
        case ["check", folder]:
            sys.exit(1 if check(Path(folder).resolve()) else 0)
        case _:
            sys.exit(__doc__)


main()
