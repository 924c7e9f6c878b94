//! The parts of the server that every request passes through: limits, origins, checks of the input, permissions of routes. Also
//! the OpenAPI document.

pub(crate) mod admission;
pub(crate) mod bad_input;
pub(crate) mod openapi;
pub(crate) mod route_permissions;
pub(crate) mod web;
