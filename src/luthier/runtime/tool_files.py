"""The project's own tools: functions marked with `@tool` in the Python files that `custom_tools` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from luthier.errors import ToolDefinitionError
from luthier.spec.scripts import find_script
from luthier.tools.custom import CustomTool
from luthier.workflows import load_module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from luthier.spec import Project


def tools_of(project: Project) -> list[CustomTool[..., Any]]:
    """All of them. Runs the files; raises ToolDefinitionError for one that cannot be run, or offers none."""
    return [tool for script in project.custom_tools for tool in _tools_in(project, script)]


def _tools_in(project: Project, script: str) -> Iterator[CustomTool[..., Any]]:
    try:
        path = find_script(project.root, script)
    except ValueError as error:
        raise ToolDefinitionError(f"`custom_tools`: {error}.") from None
    try:
        module = load_module(path)
    except ToolDefinitionError:
        raise
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ToolDefinitionError(f"{script} cannot be read for tools: {said}") from error
    found = [value for value in vars(module).values() if isinstance(value, CustomTool)]
    if not found:
        message = f"{script} defines no tools."
        raise ToolDefinitionError(
            message, hint="Write `from luthier import tool` and `@tool` over a function."
        )
    yield from dict.fromkeys(found)
