//! The endpoint of webhooks. It accepts every request and responds at once.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::clock::{Instants, marks};

/// A listening endpoint. It stops when it is dropped.
pub(crate) struct Receiver {
    pub(crate) url: String,
    task: JoinHandle<()>,
}

impl Receiver {
    /// Starts an endpoint. With `arrived`, it stores the times when the events of marked writes arrive.
    pub(crate) async fn start(arrived: Option<Arc<Instants>>) -> Receiver {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().fallback(take).with_state(arrived);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Receiver { url, task }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn take(State(arrived): State<Option<Arc<Instants>>>, body: Bytes) -> StatusCode {
    if let Some(arrived) = arrived {
        marks(&body, |number| arrived.note(number));
    }
    StatusCode::OK
}
