"""Configuration: the file as frozen values, read and checked before anything starts."""

from __future__ import annotations

from monrest.config.addresses import Address, Listener, parse_address, parse_listener
from monrest.config.frontend import (
    BpConfig,
    ClusterConfig,
    ControlledNode,
    FederationConfig,
    JobsConfig,
    LogcacheConfig,
    MailConfig,
    NodeControlConfig,
    PanoramaConfig,
    ReportsConfig,
)
from monrest.config.load import ConfigError, load, loads
from monrest.config.sections import (
    AuthConfig,
    Config,
    ConfigTool,
    ConfigToolDefaults,
    DatabaseConfig,
    DisplayConfig,
    EditorConfig,
    EditorFiles,
    LmdConfig,
    LmdSiteConfig,
    NamesConfig,
    ServerConfig,
    SiteConfig,
)

__all__ = [
    "Address",
    "AuthConfig",
    "BpConfig",
    "ClusterConfig",
    "Config",
    "ConfigError",
    "ConfigTool",
    "ConfigToolDefaults",
    "ControlledNode",
    "DatabaseConfig",
    "DisplayConfig",
    "EditorConfig",
    "EditorFiles",
    "FederationConfig",
    "JobsConfig",
    "Listener",
    "LmdConfig",
    "LmdSiteConfig",
    "LogcacheConfig",
    "MailConfig",
    "NamesConfig",
    "NodeControlConfig",
    "PanoramaConfig",
    "ReportsConfig",
    "ServerConfig",
    "SiteConfig",
    "load",
    "loads",
    "parse_address",
    "parse_listener",
]
