//! The log, with one readable line where a thing is handled, and the export of spans.

use blockbase_telemetry::{Settings, TARGET, Telemetry};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::{Config, LogFormat};

/// Starts logging to standard error, and telemetry if it is on.
///
/// # Errors
/// A line that names the variable, if `SVC_LOG` is not a filter, or if a variable of OpenTelemetry is malformed.
pub(crate) fn start(config: &Config) -> Result<Option<Telemetry>, String> {
    // Telemetry also logs while it starts. So there is a temporary log for that time. The final log can be made only after the
    // start, because it contains telemetry's layer.
    let early = tracing_subscriber::registry().with(filter(config)?).with(log(config));
    let telemetry = match config.telemetry {
        false => None,
        true => Some(tracing::subscriber::with_default(early, || start_telemetry(config))?),
    };
    match telemetry.as_ref().and_then(Telemetry::layer) {
        None => tracing_subscriber::registry().with(filter(config)?).with(log(config)).init(),
        Some(spans) => {
            let shown = filter(config)?.and(filter_fn(|metadata| metadata.target() != TARGET));
            tracing_subscriber::registry().with(log(config).with_filter(shown)).with(spans).init();
        }
    }
    Ok(telemetry)
}

fn start_telemetry(config: &Config) -> Result<Telemetry, String> {
    blockbase_telemetry::init(&Settings {
        version: env!("CARGO_PKG_VERSION"),
        traces: config.otlp.traces,
        metrics: config.otlp.metrics,
    })
}

/// A library that logs each message at `info`, and each client's error at `warn`.
const TALKATIVE: &str = "rmcp";

fn filter(config: &Config) -> Result<EnvFilter, String> {
    let mut directives = config.log.clone();
    if !directives.contains(TALKATIVE) {
        directives.push_str(&format!(",{TALKATIVE}=error"));
    }
    EnvFilter::try_new(directives)
        .map_err(|error| format!("SVC_LOG needs a filter like info or blockbase_rest=debug,info: {error}."))
}

fn log<S>(config: &Config) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span> + Send + Sync,
{
    let log = fmt::layer().with_writer(std::io::stderr).with_target(false);
    match config.log_format {
        LogFormat::Pretty => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => log.json().boxed(),
    }
}
