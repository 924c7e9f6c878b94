//! What every request passes: limits, origins, malformed input, permissions of routes, the OpenAPI document.

pub(crate) mod admission;
pub(crate) mod bad_input;
pub(crate) mod openapi;
pub(crate) mod route_permissions;
pub(crate) mod web;
