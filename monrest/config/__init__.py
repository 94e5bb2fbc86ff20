"""Configuration: the file as frozen values, read and checked before anything starts."""

from __future__ import annotations

from monrest.config.addresses import Address, Listener, parse_address, parse_listener
from monrest.config.load import ConfigError, load, loads
from monrest.config.values import (
    AuthConfig,
    ClusterConfig,
    Config,
    ConfigTool,
    ConfigToolDefaults,
    DatabaseConfig,
    DisplayConfig,
    EditorConfig,
    EditorFiles,
    JobsConfig,
    LmdConfig,
    LogcacheConfig,
    MailConfig,
    NamesConfig,
    ReportsConfig,
    ServerConfig,
    SiteConfig,
)

__all__ = [
    "Address",
    "AuthConfig",
    "ClusterConfig",
    "Config",
    "ConfigError",
    "ConfigTool",
    "ConfigToolDefaults",
    "DatabaseConfig",
    "DisplayConfig",
    "EditorConfig",
    "EditorFiles",
    "JobsConfig",
    "Listener",
    "LmdConfig",
    "LogcacheConfig",
    "MailConfig",
    "NamesConfig",
    "ReportsConfig",
    "ServerConfig",
    "SiteConfig",
    "load",
    "loads",
    "parse_address",
    "parse_listener",
]
