//! The pipelines that bring recorded values to scrapers of `/metrics` and to an OTLP collector.
//!
//! The SDK reads its own variables (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, …), and logs a warning about values that
//! it cannot use.

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::instruments::{Instruments, SCOPE};
use crate::spans::TARGET;

/// The longest time for the last export when the server ends.
const FLUSH: Duration = Duration::from_secs(5);

/// The content type of [`Telemetry::render_prometheus`].
pub const PROMETHEUS_CONTENT_TYPE: &str = TEXT_FORMAT;

/// The settings of telemetry.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The service's version.
    pub version: &'static str,
    /// The collector of traces.
    pub traces: Option<Collector>,
    /// The collector of metrics.
    pub metrics: Option<Collector>,
}

/// The settings of a collector. The exporter reads its address and headers from the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Whether the collector's address begins with `https`.
    pub is_https: bool,
    /// The time limit of one export.
    pub timeout: Duration,
}

impl Collector {
    fn client(self) -> Result<Client, String> {
        // Installs the process's provider of cryptography. An error only means that the process already has one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().timeout(self.timeout).redirect(Policy::none());
        let client = match self.is_https {
            true => client,
            // Without `https`, the client does not need the system's certificates. A small container image may have none.
            false => client.tls_certs_only([]),
        };
        client.build().map_err(|error| format!("The client of the OTLP collector cannot be made: {}.", causes(&error)))
    }
}

/// An error and its causes, on one line.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The running pipelines. Clones share them.
#[derive(Clone)]
pub struct Telemetry {
    registry: Registry,
    meters: SdkMeterProvider,
    tracers: Option<SdkTracerProvider>,
}

/// Starts the pipelines, and turns the recording functions on. It is called once, before the async runtime starts. An exporter's
/// client has its own runtime and threads, so a slow collector does not slow down the service.
///
/// # Errors
/// A sentence for the operator, if a variable that the SDK reads is malformed.
pub fn init(settings: &Settings) -> Result<Telemetry, String> {
    let resource = resource(settings.version);
    let registry = Registry::new();
    let exporter = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        // There is only one scope, so a label for it would be useless.
        .scope_info_enabled(false)
        .build()
        .map_err(|error| format!("/metrics cannot be set up: {error}."))?;
    let mut meters = SdkMeterProvider::builder().with_resource(resource.clone()).with_reader(exporter);
    if let Some(collector) = settings.metrics {
        let exporter = MetricExporter::builder().with_http().with_http_client(collector.client()?);
        let exporter = exporter.build().map_err(unusable)?;
        meters = meters.with_reader(PeriodicReader::builder(exporter).build());
    }
    let meters = meters.build();

    let tracers = match settings.traces {
        None => None,
        Some(collector) => {
            let exporter = SpanExporter::builder().with_http().with_http_client(collector.client()?);
            let exporter = exporter.build().map_err(unusable)?;
            Some(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
        }
    };
    Instruments::new(meters.clone(), tracers.is_some()).install();
    Ok(Telemetry { registry, meters, tracers })
}

/// The error is not shown, because it contains the address, which may contain a key.
fn unusable(_: ExporterBuildError) -> String {
    "OTEL_EXPORTER_OTLP_ENDPOINT, or the variable of a single signal, is not an address that the exporter can use.".to_owned()
}

/// The attributes of this process. The operator's `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence.
fn resource(version: &'static str) -> Resource {
    let given = Resource::builder().build();
    let is_given = |key: &Key| given.get(key).is_some_and(|value| !value.as_str().starts_with("unknown_service"));
    let own = [
        KeyValue::new("service.name", "blockbase"),
        KeyValue::new("service.version", version),
        KeyValue::new("service.instance.id", uuid::Uuid::new_v4().to_string()),
    ];
    let own = own.into_iter().filter(|attribute| !is_given(&attribute.key));
    Resource::builder().with_attributes(own).build()
}

impl Telemetry {
    /// The layer that exports the spans of this crate, with its filter. `None` if traces are not exported.
    pub fn layer<S>(&self) -> Option<impl Layer<S> + Send + Sync + 'static>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync + 'static,
    {
        let tracer = self.tracers.as_ref()?.tracer(SCOPE);
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            // This process never reads OpenTelemetry's current context.
            .with_context_activation(false);
        Some(layer.with_filter(Targets::new().with_target(TARGET, LevelFilter::INFO)))
    }

    /// Every metric in Prometheus' text format.
    ///
    /// # Errors
    /// The encoder's error.
    pub fn render_prometheus(&self) -> Result<String, String> {
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(|error| error.to_string())
    }

    /// Exports the remaining data, and ends the pipelines. This blocks the thread for at most little more than five seconds.
    pub fn shutdown(&self) {
        let tracers = self.tracers.clone();
        let traces = std::thread::spawn(move || tracers.map_or(Ok(()), |tracers| tracers.shutdown_with_timeout(FLUSH)));
        let metrics = self.meters.shutdown_with_timeout(FLUSH);
        let traces = traces.join().unwrap_or(Ok(()));
        for (what, flushed) in [("metrics", metrics), ("traces", traces)] {
            if let Err(error) = flushed {
                tracing::warn!(error.cause = %error, "the last {what} did not reach the collector");
            }
        }
    }
}
