"""A clean channel."""

from channel.errors import INTACT, ErrorModel, ErrorModelPlugin, Verdict
from common.options import NoOptions


class NoErrors(ErrorModel):
    """A clean channel."""

    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        return INTACT


ERROR_MODEL = ErrorModelPlugin(
    name="none",
    summary="never",
    options=NoOptions,
    make=lambda options, rng: NoErrors(),
    example={},
)
