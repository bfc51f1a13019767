"""The files that people write: read with positions, checked whole, kept as frozen values."""

from luthier.spec.budget import Budget
from luthier.spec.check import check_ensemble, web_rules
from luthier.spec.check_launch import launch_faults
from luthier.spec.control import (
    BranchFlow,
    ControlFlow,
    FlowItem,
    FlowStep,
    ForeachFlow,
    MapReduceFlow,
    ParallelFlow,
    Retry,
    RunScoring,
    Scoring,
    SwitchFlow,
    TryFlow,
    WaitFor,
    WhileFlow,
)
from luthier.spec.document import Document
from luthier.spec.ensemble import (
    ApiConfig,
    CodeConfig,
    Config,
    EndorseConfig,
    Ensemble,
    EnsembleConfig,
    HitlConfig,
    Input,
    Sort,
    Step,
    StorageConfig,
    ThinkConfig,
    ToolsConfig,
    TransformConfig,
)
from luthier.spec.http_trigger import HttpTrigger
from luthier.spec.inputs import bind_inputs, check_inputs, read_input_text
from luthier.spec.load import load
from luthier.spec.origin import NOWHERE, Origin
from luthier.spec.outputs import OutputBlock
from luthier.spec.paths import check_paths, ensemble_files
from luthier.spec.policy import LabelTest, Policies, PolicyRule
from luthier.spec.profile import Hole, LaunchProfile, Sandbox
from luthier.spec.project import Auth, Breaker, EnvFile, Launch, Project, ServerEntry, Tls, ToolFilter
from luthier.spec.prompt import Argument, Message, Prompt, load_prompt, prompt_files
from luthier.spec.provider import Provider
from luthier.spec.read import load_ensemble, read_ensemble
from luthier.spec.read_project import find_project, load_project, read_project
from luthier.spec.resources import Resource, Variable
from luthier.spec.scripts import entry_names, entry_point, find_script
from luthier.spec.serve import Serve
from luthier.spec.trigger import ApiTrigger, McpTrigger, Trigger
from luthier.spec.write_servers import read_entry, server_mapping, written

__all__ = [
    "NOWHERE",
    "ApiConfig",
    "ApiTrigger",
    "Argument",
    "Auth",
    "BranchFlow",
    "Breaker",
    "Budget",
    "CodeConfig",
    "Config",
    "ControlFlow",
    "Document",
    "EndorseConfig",
    "Ensemble",
    "EnsembleConfig",
    "EnvFile",
    "FlowItem",
    "FlowStep",
    "ForeachFlow",
    "HitlConfig",
    "Hole",
    "HttpTrigger",
    "Input",
    "LabelTest",
    "Launch",
    "LaunchProfile",
    "MapReduceFlow",
    "McpTrigger",
    "Message",
    "Origin",
    "OutputBlock",
    "ParallelFlow",
    "Policies",
    "PolicyRule",
    "Project",
    "Prompt",
    "Provider",
    "Resource",
    "Retry",
    "RunScoring",
    "Sandbox",
    "Scoring",
    "Serve",
    "ServerEntry",
    "Sort",
    "Step",
    "StorageConfig",
    "SwitchFlow",
    "ThinkConfig",
    "Tls",
    "ToolFilter",
    "ToolsConfig",
    "TransformConfig",
    "Trigger",
    "TryFlow",
    "Variable",
    "WaitFor",
    "WhileFlow",
    "bind_inputs",
    "check_ensemble",
    "check_inputs",
    "check_paths",
    "ensemble_files",
    "entry_names",
    "entry_point",
    "find_project",
    "find_script",
    "launch_faults",
    "load",
    "load_ensemble",
    "load_project",
    "load_prompt",
    "prompt_files",
    "read_ensemble",
    "read_entry",
    "read_input_text",
    "read_project",
    "server_mapping",
    "web_rules",
    "written",
]
