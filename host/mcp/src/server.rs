//! The server in rmcp's terms: its description, its lists, its calls, and its subscriptions.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use blockbase_app::schema::{Code, Error, excerpt, quoted};
use blockbase_app::{App, CLIENT_STALLED_MAX, HEARTBEAT, log_cause};
use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::answer::INVALID_PARAMS;
use crate::call::Call;
use crate::hints;
use crate::tools::{Refusal, VisibleTools, describe, run};
use crate::watch::Watched;

const INSTRUCTIONS: &str = "The tools work on records of data objects that are defined at run time, and call actions of \
    installed blocks. Begin with list_objects. Then get_object shows an object's fields, the keys of its related records and \
    its unique targets. Every tool acts with the permissions of the credential that the connection presents. An error's text is \
    `{ error, message, field?, issues? }` with a stable code in `error`.";

/// Methods that this server supports.
const METHODS: [&str; 6] = ["initialize", "ping", "tools/list", "tools/call", "server/discover", "subscriptions/listen"];

/// The server. All requests share it.
#[derive(Clone)]
pub(crate) struct Server {
    app: Arc<App>,
    draining: watch::Receiver<bool>,
}

/// The protocol over HTTP. Each request is answered by itself. REST's middleware has already checked host and origin.
pub(crate) fn protocol(app: Arc<App>, draining: watch::Receiver<bool>) -> StreamableHttpService<Server, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(HEARTBEAT))
        .with_sse_retry(None)
        // The size of the body was checked when it was read.
        .with_max_request_body_bytes(usize::MAX);
    let server = Server { app, draining };
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

/// A domain error as an error of the protocol.
fn protocol_error(error: &Error) -> ErrorData {
    log_cause(error);
    ErrorData::new(ErrorCode::INTERNAL_ERROR, error.message_for(hints::words).into_owned(), Some(error.envelope(hints::words)))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let server = Implementation::new("blockbase", env!("CARGO_PKG_VERSION")).with_title("Blockbase");
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("The list has only one page. Request it without a cursor.", None));
        }
        let call = Call::of(&context).map_err(|error| protocol_error(&error))?;
        let shown = VisibleTools::to(&self.app, &call.invoked.caller);
        call.outcome.lock().shown = Some(shown.fingerprint());
        Ok(ListToolsResult::with_all_items(describe::tools(&shown, self.app.settings().bulk_records_max)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call::of(&context).map_err(|error| protocol_error(&error))?;
        // A panic in a tool becomes the error of that call only. The operation is dropped if the client disconnects or cancels.
        let running = AssertUnwindSafe(run::run(&self.app, &call, &request.name)).catch_unwind();
        let answered = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("The call was cancelled.", None)),
            answered = running => answered.unwrap_or_else(|_| Err(Error::internal("a tool panicked").into())),
        };
        let result = match answered {
            Ok(document) => {
                call.outcome.lock().document = Some(document);
                let mut result = CallToolResult::success(vec![ContentBlock::text(call.marker.clone())]);
                result.structured_content = Some(Value::String(call.marker.clone()));
                result
            }
            Err(Refusal::UnknownTool(name)) => {
                let message = format!("Unknown tool: {}", excerpt(&name));
                let text = format!("There is no tool {}. It may have been removed.", quoted(&name));
                let data = json!({ "error": Code::NotFound.as_str(), "message": text });
                return Err(ErrorData::new(ErrorCode(INVALID_PARAMS), message, Some(data)));
            }
            Err(Refusal::Failed(error)) => {
                log_cause(&error);
                let text = error.envelope(hints::words).to_string();
                if error.code == Code::Unauthorized {
                    call.outcome.lock().unauthorized = Some(error);
                }
                CallToolResult::error(vec![ContentBlock::text(text)])
            }
        };
        Ok(result.into())
    }

    /// Answers a message that rmcp does not know. Its method does not exist, or does not accept its parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(match METHODS.contains(&method.as_str()) {
            true => {
                ErrorData::invalid_params(format!("The method `{}` does not accept these parameters.", excerpt(&method)), None)
            }
            false => {
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("There is no method `{}` here.", excerpt(&method)), None)
            }
        })
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let call = Call::of(subscription.request_context()).map_err(|error| protocol_error(&error))?;
        let known_tools = VisibleTools::to(&self.app, &call.invoked.caller).fingerprint();
        let mut watched = Watched::new(&self.app, &call.invoked, known_tools, self.draining.clone());
        let is_for_tools = subscription.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                biased;
                () = subscription.cancelled() => return Ok(()),
                changed = watched.changed() => match changed {
                    Some(()) if is_for_tools => {
                        let notified = tokio::time::timeout(CLIENT_STALLED_MAX, subscription.sink().notify_tool_list_changed());
                        if !matches!(notified.await, Ok(Ok(()))) {
                            return Ok(());
                        }
                    }
                    Some(()) => {}
                    None => return Ok(()),
                },
            }
        }
    }
}
