//! The parts that every request passes: limits, origins, checks of the input, permissions of routes. Also the OpenAPI document.

pub(crate) mod admission;
pub(crate) mod bad_input;
pub(crate) mod openapi;
pub(crate) mod route_permissions;
pub(crate) mod web;
