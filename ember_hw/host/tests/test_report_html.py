from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from ember_hw.host.report import Report
from ember_hw.host.report_html import as_fragment, as_html
from ember_hw.host.tests.profiles import a_timed_report
from ember_hw.host.tests.test_report import untimed_report

#: Elements without an end.
VOID = ("meta", "path", "use", "rect", "image")


class Page(HTMLParser):
    """What is on a page, and whether every element ends where it must."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.figures: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        values = dict(attrs)
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]
        if tag == "figure":
            self.figures.append(values.get("id") or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def report() -> Report:
    return a_timed_report(program="<b>bag</b> </script>", memory="fast & near (latency 1)")


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return as_html(report)


def test_page_has_every_picture_and_needs_nothing_else(text: str) -> None:
    page = Page(text)
    assert page.figures == ["cycles", "roofline", "occupancy", "reuse"]
    assert all(link.startswith("#") for link in page.links)
    assert "url(http" not in text
    assert "@import" not in text
    assert text.count("aria-label=") == 4


def test_names_are_text_on_the_page(text: str) -> None:
    assert "<b>bag</b>" not in text
    assert text.count("</script>") == 1
    assert "fast &amp; near (latency 1)" in text


def test_pictures_follow_the_colours_of_the_page(text: str) -> None:
    assert "prefers-color-scheme: dark" in text
    figures = "".join(re.findall(r"<figure.*?</figure>", text, re.DOTALL))
    assert "var(--rows)" in figures
    assert re.findall(r"#[0-9a-f]{6}\b(?!\")", figures) == []


def test_page_says_what_the_text_says(text: str) -> None:
    words = " ".join(Page(text).texts)
    for fact in ("2,000", "10,000", "100.0 µs", "80.0%", "90.0%", "4.90", "20,000,000"):
        assert fact in words
    for fact in ("outstanding_reads", "torch 2.13", "0.25 s on the machine it ran on"):
        assert fact in words


def test_report_can_be_read_back_from_its_page(text: str, report: Report) -> None:
    (data,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)
    assert Report.from_dict(json.loads(data)) == report


def test_notebook_shows_text_and_pictures(report: Report) -> None:
    shown = as_fragment(report)
    assert report._repr_html_() == shown  # pyright: ignore[reportPrivateUsage]  # a notebook calls it
    page = Page(shown)
    assert page.texts[0] == str(report)
    assert shown.count("<svg") == 4
    assert "var(" not in shown


def test_run_without_a_clock_has_a_page_without_pictures() -> None:
    page = Page(as_html(untimed_report()))
    assert page.figures == []
    assert "No pictures: backend interpreter has no clock." in page.texts
