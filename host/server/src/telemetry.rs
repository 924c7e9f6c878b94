//! The log: one readable line where a thing is handled.

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts logging to standard error.
///
/// # Errors
/// `SVC_LOG` is no filter.
pub(crate) fn start_log(config: &Config) -> Result<(), String> {
    let filter = EnvFilter::try_new(&config.log)
        .map_err(|error| format!("SVC_LOG needs a filter like info or blockbase_rest=debug,info: {error}."))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match config.log_format {
        LogFormat::Pretty => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
