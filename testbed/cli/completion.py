"""`completion`: the script by which a shell completes fadelab's commands, options and runs."""

import click

_SHELLS = ("bash", "zsh", "fish")
#: click's name for the variable by which the script asks this program
_VARIABLE = "_FADELAB_COMPLETE"


@click.command(epilog="docs/install.md#shell-completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL. For this terminal: eval "$(./fadelab completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(context.find_root().command, {}, "fadelab", _VARIABLE)
    # source() of bash asks the installed bash for its version, which may be another than the one that reads this
    click.echo(script.source_template % script.source_vars())


COMMAND = completion
