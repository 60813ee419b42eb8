"""Modules that all folders may import and that import no other folder: registry, options, units, sequence numbers."""

from common.compiled import install as _install

_install()
