"""Configuration: the file as frozen values, read and checked before anything starts."""

from __future__ import annotations

from monrest.config.addresses import Address, Listener, parse_address, parse_listener
from monrest.config.load import ConfigError, load, loads
from monrest.config.values import (
    AuthConfig,
    BpConfig,
    ClusterConfig,
    Config,
    ConfigTool,
    ConfigToolDefaults,
    ControlledNode,
    DatabaseConfig,
    DisplayConfig,
    EditorConfig,
    EditorFiles,
    JobsConfig,
    LmdConfig,
    LogcacheConfig,
    NamesConfig,
    NodeControlConfig,
    PanoramaConfig,
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
    "JobsConfig",
    "Listener",
    "LmdConfig",
    "LogcacheConfig",
    "NamesConfig",
    "NodeControlConfig",
    "PanoramaConfig",
    "ServerConfig",
    "SiteConfig",
    "load",
    "loads",
    "parse_address",
    "parse_listener",
]
