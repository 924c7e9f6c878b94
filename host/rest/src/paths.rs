//! The part of a path that the checks before its route need.

/// Whether machines request the path every few seconds. Such requests are not logged.
pub(crate) fn is_probe(path: &str) -> bool {
    is_health(path) || path == "/metrics"
}

pub(crate) fn is_health(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Whether a path is a page of the console, or a file from the binary. These have their own limit.
pub(crate) fn is_file(path: &str) -> bool {
    path == "/admin" || path.starts_with("/admin/") || path.starts_with("/api/v1/graphql/assets/")
}
