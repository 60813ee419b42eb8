"""The browser that shows the page where nobody looks: for the pictures of the documents, and for tests."""

#: Debian's
CHROMIUM = "/usr/bin/chromium"
#: it runs as root, and asks for nothing that is not the page's
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
