"""The files that people write: read with positions, checked whole, kept as frozen values."""

from luthier.spec.ensemble import (
    CodeConfig,
    Ensemble,
    EnsembleConfig,
    FlowItem,
    FlowStep,
    Input,
    ParallelFlow,
    Retry,
    Sort,
    Step,
    ToolsConfig,
    TransformConfig,
)
from luthier.spec.project import Auth, Breaker, Project, Sandbox, ServerEntry, Tls, ToolFilter

__all__ = [
    "Auth",
    "Breaker",
    "CodeConfig",
    "Ensemble",
    "EnsembleConfig",
    "FlowItem",
    "FlowStep",
    "Input",
    "ParallelFlow",
    "Project",
    "Retry",
    "Sandbox",
    "ServerEntry",
    "Sort",
    "Step",
    "Tls",
    "ToolFilter",
    "ToolsConfig",
    "TransformConfig",
]
