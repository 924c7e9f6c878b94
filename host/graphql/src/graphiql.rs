//! The explorer for browsers.

use http::Response;
use http_body_util::{BodyExt, Empty};

use crate::http::Body;

pub(crate) fn page() -> Response<Body> {
    Response::new(Empty::new().boxed())
}
