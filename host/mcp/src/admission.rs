//! The admission to the surface.

use blockbase_app::schema::{Error, Result};
use blockbase_app::{App, Caller};

use crate::tools::VisibleTools;

/// Admits signed-in callers who have the platform permission on `data`. Anonymous callers are admitted if they may use at least
/// one tool.
pub(crate) fn require_admission(app: &App, caller: &Caller) -> Result<()> {
    caller.require_platform()?;
    match caller.is_known() || !app.settings().require_auth || VisibleTools::any(app, caller) {
        true => Ok(()),
        false => Err(Error::unauthenticated()),
    }
}
