"""A document of headings, paragraphs, tables and figures, as Markdown and as one HTML file."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Heading:
    """A headline; 1 is the document's."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below headings. Columns from `numbers_from` on have numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers_from: int = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as SVG."""

    name: str
    caption: str
    svg: str = field(repr=False)


Block = Heading | Paragraph | Code | Table | Picture


def markdown(blocks: Sequence[Block], figures: str) -> str:
    """Return the document as Markdown, with pictures from a folder."""
    lines: list[str] = []
    for block in blocks:
        lines += [*_markdown(block, figures), ""]
    return "\n".join(lines)


def _markdown(block: Block, figures: str) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"{'#' * level} {text}"
        case Paragraph(text):
            yield text
        case Code(text):
            yield from ("```sh", text, "```")
        case Table(headings, rows, numbers_from):
            marks = ["---" if column < numbers_from else "---:" for column in range(len(headings))]
            for row in (headings, marks, *rows):
                yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"
        case Picture(name, caption):
            yield f"![{caption}]({figures}/{name}.svg)"


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a;
  background: #fff }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
th { border-bottom: 2px solid #555 } td.n, th.n { text-align: right }
pre { background: #f4f4f4; padding: .6rem; overflow-x: auto; font-size: 13px }
div.wide { overflow-x: auto } figure { margin: 1.5rem 0 } figure svg { max-width: 100%; height: auto }
figcaption { font-size: 13px; color: #444 } h2 { margin-top: 2rem }
@media print { body { max-width: none; font-size: 11px } table { font-size: 9px } figure, tr { break-inside: avoid } }
"""


def page(blocks: Sequence[Block]) -> str:
    """Return the document as one HTML file that needs no other."""
    title = next((block.text for block in blocks if isinstance(block, Heading)), "")
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Code(text):
            return f"<pre>{html.escape(text)}</pre>"
        case Table(headings, rows, numbers_from):
            head = _cells("th", headings, numbers_from)
            body = "\n".join(_cells("td", row, numbers_from) for row in rows)
            return f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>'
        case Picture(_, caption, svg):
            # the part before the element is for stand-alone files
            return f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _cells(tag: str, cells: Sequence[str], numbers_from: int) -> str:
    marks = ["" if column < numbers_from else ' class="n"' for column in range(len(cells))]
    made = (f"<{tag}{mark}>{html.escape(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True))
    return f"<tr>{''.join(made)}</tr>"
