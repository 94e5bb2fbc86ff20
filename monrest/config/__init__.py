"""Configuration: the file as frozen values, read and checked before anything starts."""

from __future__ import annotations

from monrest.config.addresses import Address, parse_address, parse_listener
from monrest.config.load import ConfigError, load, loads
from monrest.config.sections import (
    AuthConfig,
    BpConfig,
    ClusterConfig,
    Config,
    ConfigTool,
    ControlledNode,
    DisplayConfig,
    EditorConfig,
    EditorFiles,
    JobsConfig,
    LmdConfig,
    LogcacheConfig,
    LogConfig,
    MailConfig,
    NodeControlConfig,
    PanoramaConfig,
    ReportsConfig,
    ServerConfig,
    SiteConfig,
    WebhooksConfig,
)

__all__ = [
    "Address",
    "AuthConfig",
    "BpConfig",
    "ClusterConfig",
    "Config",
    "ConfigError",
    "ConfigTool",
    "ControlledNode",
    "DisplayConfig",
    "EditorConfig",
    "EditorFiles",
    "JobsConfig",
    "LmdConfig",
    "LogConfig",
    "LogcacheConfig",
    "MailConfig",
    "NodeControlConfig",
    "PanoramaConfig",
    "ReportsConfig",
    "ServerConfig",
    "SiteConfig",
    "WebhooksConfig",
    "load",
    "loads",
    "parse_address",
    "parse_listener",
]
