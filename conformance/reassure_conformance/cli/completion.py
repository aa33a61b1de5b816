"""The verb `completion`: what a shell needs to complete verbs, options and names."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the script with which a shell completes verbs, options and names.

    For bash: reassure completion bash > ~/.local/share/bash-completion/completions/reassure
    """
    from click.shell_completion import get_completion_class

    root, found = click.get_current_context().find_root(), get_completion_class(shell)
    assert found is not None
    click.echo(found(root.command, {}, "reassure", COMPLETE).source())
    return 0


COMPLETE = "_REASSURE_COMPLETE"
"""The variable by which a shell asks for completions, as click names it."""
