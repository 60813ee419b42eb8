"""Builds the site with MkDocs and its theme Material, and shows it."""

import logging
import shutil
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testbed.cli.docs.pages import navigation, stage
from testbed.errors import FadelabError
from testbed.paths import root

#: a file that every site has
_MARK = "sitemap.xml"
#: makes the search work on pages that are opened from the disk. Its name on the site has the word by which the plugin
#: `offline` knows such a script; without one it would name one in the network
_FROM_DISK = Path(__file__).parent / "search_from_disk.js"
_SHIM = "assets/iframe-worker.js"
_THEME: dict[str, Any] = {
    "name": "material",
    # the system's own: others would come from the network
    "font": False,
    "features": ["navigation.tabs", "navigation.top", "toc.follow", "content.code.copy"],
    "palette": [
        {
            "media": f"(prefers-color-scheme: {scheme})",
            "scheme": name,
            "primary": "indigo",
            "toggle": {"icon": icon, "name": f"Switch to {other} mode"},
        }
        for scheme, name, icon, other in (
            ("light", "default", "material/weather-night", "dark"),
            ("dark", "slate", "material/weather-sunny", "light"),
        )
    ],
}


def build(target: Path) -> int:
    """Build the site in a folder and return the number of its pages. Raises FadelabError, with the first warning."""
    try:
        from mkdocs.commands import build as builder
        from mkdocs.config import load_config
        from mkdocs.exceptions import MkDocsException
    except ImportError as error:
        raise FadelabError(f"the site needs {error.name}: ./fadelab docs installs it") from None
    _check_target(target)
    checkout = root().resolve()
    with tempfile.TemporaryDirectory(prefix="fadelab-docs-") as place, _Warnings() as warnings:
        pages_folder = Path(place) / "pages"
        pages = stage(checkout, pages_folder)
        (pages_folder / _SHIM).parent.mkdir(exist_ok=True)
        shutil.copyfile(_FROM_DISK, pages_folder / _SHIM)
        config_file = Path(place) / "mkdocs.yml"
        config_file.write_text("site_name: fadelab\n")
        try:
            config = load_config(
                str(config_file),
                docs_dir=str(pages_folder),
                site_dir=str(target.resolve()),
                **_options(checkout, pages),
            )
            config.plugins.on_startup(command="build", dirty=False)
            builder.build(config)
            config.plugins.on_shutdown()
        except MkDocsException as error:
            raise FadelabError(f"the site cannot be built: {warnings.first or error}") from None
        except OSError as error:
            raise FadelabError(f"{target}: the site cannot be written: {error.strerror}") from None
    return len(pages)


def _check_target(target: Path) -> None:
    """Raise FadelabError for a folder with other files than those of a site: the builder empties it."""
    try:
        if target.exists() and any(target.iterdir()) and not (target / _MARK).exists():
            raise FadelabError(f"{target}: holds other files, which would be lost; name an empty folder with --out")
    except OSError as error:
        raise FadelabError(f"{target}: {error.strerror}; name a folder with --out") from None


def serve(target: Path, port: int) -> None:
    """Show the site to this machine until Ctrl-C. Raises FadelabError when the port is in use."""
    handler = partial(_Quiet, directory=str(target))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise FadelabError(f"port {port}: {error.strerror}; choose another --port") from None
    with server:
        print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
        server.serve_forever()


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line per request."""

    def log_message(self, *_: object) -> None:
        pass


class _Warnings(logging.Handler):
    """Keeps the first warning of MkDocs; a context manager."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()

    def __enter__(self) -> "_Warnings":
        logging.getLogger("mkdocs").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("mkdocs").removeHandler(self)


def _options(checkout: Path, pages: list[str]) -> dict[str, Any]:
    from pymdownx.slugs import slugify

    return {
        "site_description": "A hardware-in-the-loop wireless testbed for TCP over lossy links",
        "strict": True,
        # pages that open from the disk, and search there, too
        "use_directory_urls": False,
        "theme": _THEME,
        "plugins": ["material/search", "material/offline"],
        "extra": {"generator": False, "polyfills": [_SHIM]},
        "nav": navigation(checkout / "docs" / "nav.yml", pages),
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": {
                "not_found": "warn",
                "anchors": "warn",
                "absolute_links": "warn",
                "unrecognized_links": "warn",
            },
        },
        "markdown_extensions": [
            "attr_list",
            "tables",
            "sane_lists",
            # anchors as GitHub makes them
            {"toc": {"slugify": slugify(case="lower"), "permalink": True}},
            {"pymdownx.highlight": {"use_pygments": True}},
            "pymdownx.superfences",
        ],
    }
