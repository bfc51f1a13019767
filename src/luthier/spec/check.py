"""Checks across documents: an ensemble against its project, its scripts and the ensembles that it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from luthier.spec.ensemble import (
    ApiConfig,
    CodeConfig,
    Ensemble,
    EnsembleConfig,
    ThinkConfig,
    ToolsConfig,
)
from luthier.spec.order import circles
from luthier.spec.provider import USUAL, provider_name
from luthier.spec.script_check import script_faults
from luthier.spec.words import as_suggestion, listed, meant, quoted
from luthier.web import UrlRules

if TYPE_CHECKING:
    from luthier.errors import Fault
    from luthier.spec.ensemble import Step
    from luthier.spec.project import Project

Known = Mapping[str, Ensemble] | Iterable[str]
"""The ensembles that there are: by name, or only their names."""


def check_ensemble(
    ensemble: Ensemble, project: Project, known: Known = (), *, unread: Iterable[str] = ()
) -> list[Fault]:
    """Every fault of an ensemble that only shows beside its project. Starts, imports and resolves nothing.

    `unread` are names of ensembles that are there but could not be read.
    """
    faults: list[Fault] = []
    names = {*known, *unread, ensemble.name}
    for step in ensemble.steps:
        match step.config:
            case ToolsConfig():
                faults += _check_server(step, step.config, ensemble, project)
            case EnsembleConfig():
                faults += _check_nested(step, step.config, names, known)
            case CodeConfig():
                script = step.config.script
                faults += script_faults(project.root, script, step.origin, "config", "script", entry=True)
            case ThinkConfig():
                faults += _check_model(step, step.config, project)
            case ApiConfig():
                faults += _check_url(step, step.config, project)
    faults += [fault for name, fault in ensemble.reads_env.items() if name not in project.expose_env]
    faults += _check_circle(ensemble, known)
    return faults


def _check_server(step: Step, config: ToolsConfig, ensemble: Ensemble, project: Project) -> Iterable[Fault]:
    entry = project.servers.get(config.server)
    if entry is None:
        message = f"there is no server {quoted(config.server)} in the project"
        has = f"it has {', '.join(project.servers)}" if project.servers else "it has none"
        where = has if project.file else "there is no luthier.yaml here or above"
        suggestion = meant(config.server, project.servers, otherwise=where)
        yield step.origin.fault(message, "config", "mcp", suggestion=suggestion)
        return
    if entry.disabled:
        message = f"the server {quoted(entry.id)} is disabled: this step will fail"
        yield step.origin.fault(message, "config", "mcp", warning=True)
    if not entry.approved:
        message = f"the server {quoted(entry.id)} waits for approval: this step will be refused"
        yield step.origin.fault(
            message, "config", "mcp", suggestion=f"luthier servers approve {entry.id}", warning=True
        )
    principal = f"ensemble:{ensemble.name}"
    if entry.allowed_agents is not None and principal not in entry.allowed_agents:
        message = f"the server {quoted(entry.id)} does not admit this ensemble: the call will be refused"
        hint = f"list {principal} under its `allowed_agents`"
        yield step.origin.fault(message, "config", "mcp", suggestion=hint, warning=True)


def _check_nested(step: Step, config: EnsembleConfig, names: set[str], known: Known) -> Iterable[Fault]:
    key = "ensemble" if step.origin.has("config", "ensemble") else "name"
    if config.ensemble not in names:
        message = f"there is no ensemble {quoted(config.ensemble)}"
        yield step.origin.fault(message, "config", key, suggestion=meant(config.ensemble, names))
        return
    nested = known.get(config.ensemble) if isinstance(known, Mapping) else None
    given = step.inputs.source if step.inputs else None
    if nested is None or not isinstance(given, dict):
        return
    for name, declared in nested.inputs.items():
        if declared.required and declared.default is None and name not in given:
            message = f"the ensemble {quoted(config.ensemble)} needs the input {quoted(name)}"
            yield step.origin.fault(message, "inputs")


def _check_model(step: Step, config: ThinkConfig, project: Project) -> Iterable[Fault]:
    written = config.model
    model = written.source if written is not None and written.is_constant else None
    if not config.provider and written is not None and model is None:
        return  # an expression decides
    name = provider_name(config.provider, model, project.providers)
    there = {**USUAL, **project.providers}
    provider = there.get(name)
    if provider is None:
        message = f"there is no provider {quoted(name)}" if name else "`provider` is missing"
        keys = ("config", "provider") if name else ("config",)
        suggestion = meant(name, there, otherwise=f"write it under `providers:`; there are {listed(there)}")
        yield step.origin.fault(message, *keys, suggestion=suggestion)
    elif written is None and not provider.model:
        hint = f"name one here, or for all steps under `providers.{provider.id}`"
        yield step.origin.fault("`model` is missing", "config", suggestion=hint)


def _check_url(step: Step, config: ApiConfig, project: Project) -> Iterable[Fault]:
    """An address that the file spells out is judged now; one that data decide on, when it is asked."""
    rules = web_rules(config, project)
    if config.literal and (fault := rules.fault(config.literal)):
        where = " in production" if rules.production else ""
        hint = as_suggestion(fault.hint).replace("this server", "this step")
        message = f"`url` {fault.why}, so it is not asked{where}"
        yield step.origin.fault(message, "config", "url", suggestion=hint)


def web_rules(config: ApiConfig, project: Project) -> UrlRules:
    """Where a step may send its request: what its file spells out, and public addresses by https."""
    named = (config.literal,) if config.literal else ()
    production = project.environment != "development"
    return UrlRules.of(*named, production=production, allow_private=config.allow_private)


def _check_circle(ensemble: Ensemble, known: Known) -> Iterable[Fault]:
    """Ensembles that run each other would never end."""
    ensembles = (
        {**known, ensemble.name: ensemble} if isinstance(known, Mapping) else {ensemble.name: ensemble}
    )
    edges = {name: _runs(other) for name, other in ensembles.items()}
    for circle in circles(_reachable(edges, ensemble.name)):
        way, step = circle, next(iter(edges[ensemble.name].values()))
        if ensemble.name in circle:
            start = circle.index(ensemble.name)
            way = [*circle[start:-1], *circle[: start + 1]]
            step = edges[ensemble.name][way[1]]
        yield step.origin.fault(f"ensembles run each other without end: {' → '.join(way)}", "config")


def _runs(ensemble: Ensemble) -> dict[str, Step]:
    return {step.config.ensemble: step for step in ensemble.steps if isinstance(step.config, EnsembleConfig)}


def _reachable(edges: Mapping[str, Mapping[str, Step]], start: str) -> dict[str, Mapping[str, Step]]:
    found, waiting = {}, [start]
    while waiting:
        name = waiting.pop()
        if name in edges and name not in found:
            found[name] = edges[name]
            waiting += edges[name]
    return found
