"""``regard --install-completion``: the shell completes commands, options, choices and paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from regard.cli.io.terminal import say
from regard.system.errors import UsageError

Shell = Literal["bash", "zsh", "fish"]
STARTUP: dict[Shell, str] = {"bash": "~/.bashrc", "zsh": "~/.zshrc"}
"""Files that load the completion; fish finds it by itself."""


def completion_command(app: App) -> Callable[..., int]:
    """The command that installs the completion of ``app``."""

    def install_completion(
        *,
        shell: Annotated[Shell | None, Parameter()] = None,
        output: Annotated[Path | None, Parameter()] = None,
    ) -> int:
        """Let the shell complete commands, options, choices and paths when Tab is pressed.

        Args:
            shell: which one; default: that of this terminal.
            output: where the script goes, instead of the shell's own folder; then the shell's startup file is left
                as it is.
        """
        chosen = shell or current_shell()
        path = app.install_completion(shell=chosen, output=output, add_to_startup=output is None)
        say(f"wrote {path}")
        if output is None:
            say(f"{STARTUP.get(chosen, 'fish')} loads it; open a new shell, or run: exec {chosen}")
        return 0

    return install_completion


def current_shell() -> Shell:
    """The shell that this process was started from.

    Raises:
        UsageError: if it is not known, or none that can be completed.
    """
    from cyclopts.completion import detect_shell
    from cyclopts.completion.detect import ShellDetectionError

    try:
        found = detect_shell()
    except ShellDetectionError:
        raise UsageError("the shell is not known; name it: bash, zsh or fish", "--shell") from None
    if found == "powershell":
        raise UsageError("PowerShell is not supported; name another: bash, zsh or fish", "--shell")
    return found
