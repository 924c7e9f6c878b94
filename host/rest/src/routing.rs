//! A router that can list its routes, which axum's own router cannot. `GET /api/v1/data` shows routes from the list, and a test
//! compares the list with the OpenAPI document.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, on};

use crate::AppState;

/// Routes, and the list of them.
pub(crate) struct Routes {
    router: Router<AppState>,
    list: Vec<(Method, &'static str)>,
}

impl Routes {
    pub(crate) fn new() -> Routes {
        Routes { router: Router::new(), list: Vec::new() }
    }

    pub(crate) fn get<H: Handler<T, AppState>, T: 'static>(self, path: &'static str, handler: H) -> Routes {
        self.on(Method::GET, MethodFilter::GET, path, handler)
    }

    pub(crate) fn post<H: Handler<T, AppState>, T: 'static>(self, path: &'static str, handler: H) -> Routes {
        self.on(Method::POST, MethodFilter::POST, path, handler)
    }

    pub(crate) fn put<H: Handler<T, AppState>, T: 'static>(self, path: &'static str, handler: H) -> Routes {
        self.on(Method::PUT, MethodFilter::PUT, path, handler)
    }

    pub(crate) fn patch<H: Handler<T, AppState>, T: 'static>(self, path: &'static str, handler: H) -> Routes {
        self.on(Method::PATCH, MethodFilter::PATCH, path, handler)
    }

    pub(crate) fn delete<H: Handler<T, AppState>, T: 'static>(self, path: &'static str, handler: H) -> Routes {
        self.on(Method::DELETE, MethodFilter::DELETE, path, handler)
    }

    /// Adds a route for every method. The list has the path only with GET.
    pub(crate) fn any<H: Handler<T, AppState>, T: 'static>(mut self, path: &'static str, handler: H) -> Routes {
        self.list.push((Method::GET, path));
        Routes { router: self.router.route(path, axum::routing::any(handler)), list: self.list }
    }

    fn on<H, T>(mut self, method: Method, filter: MethodFilter, path: &'static str, handler: H) -> Routes
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.list.push((method, path));
        Routes { router: self.router.route(path, on(filter, handler)), list: self.list }
    }

    pub(crate) fn merge(mut self, other: Routes) -> Routes {
        self.list.extend(other.list);
        Routes { router: self.router.merge(other.router), list: self.list }
    }

    pub(crate) fn into_router(self) -> Router<AppState> {
        self.router
    }

    /// Each method with its path, in the order in which they were added.
    pub(crate) fn list(&self) -> &[(Method, &'static str)] {
        &self.list
    }
}
