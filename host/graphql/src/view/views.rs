//! The views of the current callers, and their complete schemas. When the schema or a block changes, the schemas for which there
//! is room are built in the background.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use async_graphql::dynamic::Schema;
use blockbase_app::schema::{Resource, Result};
use blockbase_app::{Action, App, Authority, Caller, CallerPermissions};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::view::View;
use crate::view::documents::Documents;
use crate::view::kept_schemas::{KeptSchemas, schema_at};

/// The maximum number of views of one version in memory. Sets of roles that see the same things share a view.
const VIEWS_MAX: usize = 64;
/// The maximum number of callers whose views are remembered. Their rights need not be read again.
const CALLERS_MAX: usize = 4096;
/// The maximum number of views whose schemas are built again after a change. These are the views that were used last. How many
/// there is room for depends on their sizes.
const REBUILT_MAX: usize = 16;

/// The maximum number of documents that are parsed and validated at the same time.
const PREPARING_MAX: usize = 2;

/// All views: see the description of this module.
pub(crate) struct Views {
    app: Arc<App>,
    known: Mutex<Known>,
    /// Documents that were valid for some view. For another view, only the differences are checked.
    pub(crate) valid: Documents,
    /// Permits to parse and validate documents. A permit is kept until the work has ended, even if the client has disconnected.
    pub(crate) preparing: Arc<Semaphore>,
}

#[derive(Default)]
struct Known {
    version: (i64, i64),
    /// The view of callers who may see everything.
    whole: Option<Arc<View>>,
    /// Views, keyed by the address of the caller's rights. The rights are kept here, so that no other rights get the same
    /// address.
    by_rights: HashMap<usize, (Arc<CallerPermissions>, Weak<View>)>,
    /// Each view with a caller who sees it. The view that was used last is at the end.
    views: Vec<(Arc<View>, Caller)>,
    schemas: KeptSchemas,
    /// Callers who used the views of the previous version.
    before: Vec<Caller>,
    /// The previous views with their schemas. It takes milliseconds to free a schema with many objects, and no request should
    /// wait for that.
    retired: Vec<(Vec<Arc<View>>, KeptSchemas)>,
}

impl Views {
    /// Also starts a task that follows changes of the schema. The task ends when the views are dropped.
    pub(crate) fn new(app: Arc<App>) -> Arc<Views> {
        let views = Arc::new(Views {
            app,
            known: Mutex::default(),
            valid: Documents::default(),
            preparing: Arc::new(Semaphore::new(PREPARING_MAX)),
        });
        tokio::spawn(follow(Arc::downgrade(&views), Arc::clone(&views.app)));
        views
    }

    /// The view that a caller sees now.
    pub(crate) fn of(&self, caller: &Caller) -> Arc<View> {
        let version = self.app.catalogue_version();
        let rights = match &caller.authority {
            Authority::Own(rights) => Some(rights),
            Authority::Block { .. } => None,
        };
        let sees_all =
            caller.holds(Resource::Objects, Action::Read) && caller.holds(Resource::Blocks, Action::Read) && !caller.has_fields();
        {
            let mut known = self.known.lock();
            known.move_to(version);
            if let Some(view) = known.whole.as_ref().filter(|_| sees_all) {
                return Arc::clone(view);
            }
            let found = rights.and_then(|rights| known.by_rights.get(&address(rights))?.1.upgrade());
            if let Some(view) = found {
                return view;
            }
        }
        let view = View::new(self.app.visible(caller), self.app.settings().events_enabled);
        let mut known = self.known.lock();
        if !known.move_to((view.registry.version, view.blocks_version)) {
            // Another request has already seen a newer version, so this view is not kept.
            return Arc::new(view);
        }
        let view = known.share(view, caller);
        if sees_all {
            known.whole = Some(Arc::clone(&view));
        } else if let Some(rights) = rights {
            if known.by_rights.len() >= CALLERS_MAX {
                known.by_rights.clear();
            }
            known.by_rights.insert(address(rights), (Arc::clone(rights), Arc::downgrade(&view)));
        }
        view
    }

    /// The complete schema of a view. If it is not kept, this builds it, and drops the schemas that were used longest ago if
    /// there is no room. Up to two introspections at a time call this: each can have a schema that is not kept.
    ///
    /// # Errors
    /// `internal`.
    pub(crate) async fn whole_schema(&self, view: &Arc<View>) -> Result<Schema> {
        let place = self.with_schemas(view, |schemas| schemas.make_room(view)).unwrap_or_default();
        schema_at(&place, view).await
    }

    /// The complete schema of a view, if it is ready. Otherwise it is built in the background for later requests, but only if
    /// there is room. If callers of many roles took turns and each dropped the schema of another, every request would build one.
    pub(crate) fn ready_schema(&self, view: &Arc<View>) -> Option<Schema> {
        let place = self.with_schemas(view, |schemas| schemas.place(view)).flatten()?;
        let ready = place.get().cloned();
        if ready.is_none() {
            let view = Arc::clone(view);
            tokio::spawn(async move {
                if let Err(error) = schema_at(&place, &view).await {
                    blockbase_app::log_cause(&error);
                }
            });
        }
        ready
    }

    /// `None` if no schema of the view's version is kept: see [`Known::schemas_of`].
    fn with_schemas<T>(&self, view: &View, act: impl FnOnce(&mut KeptSchemas) -> T) -> Option<T> {
        let mut known = self.known.lock();
        let schemas = known.schemas_of(view)?;
        let result = act(schemas);
        let dropped = schemas.take_dropped();
        drop(known);
        if !dropped.is_empty() {
            tokio::task::spawn_blocking(move || drop(dropped));
        }
        Some(result)
    }

    /// The callers whose schemas are built after a change.
    fn callers_to_build(&self) -> Vec<Caller> {
        let mut callers: Vec<Caller> = {
            let known = self.known.lock();
            known.views.iter().map(|(_, caller)| caller).chain(&known.before).rev().cloned().collect()
        };
        callers.truncate(REBUILT_MAX - 1);
        // The view of callers who may see everything comes first, because usually an admin sends the first request.
        callers.insert(0, Caller::system());
        callers
    }

    /// Builds the schemas of these callers for which there is room. Returns `false` if it stopped because the version changed.
    async fn build_for(&self, callers: &[Caller]) -> bool {
        let version = self.app.catalogue_version();
        for caller in callers {
            let view = self.of(caller);
            self.free_retired().await;
            if self.app.catalogue_version() != version {
                return false;
            }
            let Some(place) = self.with_schemas(&view, |schemas| schemas.place(&view)).flatten() else { continue };
            if let Err(error) = schema_at(&place, &view).await {
                blockbase_app::log_cause(&error);
            }
        }
        true
    }

    /// Frees the previous views, so that their schemas take no memory beside the new ones.
    async fn free_retired(&self) {
        let retired = std::mem::take(&mut self.known.lock().retired);
        if !retired.is_empty() {
            let _ = tokio::task::spawn_blocking(move || drop(retired)).await;
        }
    }
}

fn address(rights: &Arc<CallerPermissions>) -> usize {
    Arc::as_ptr(rights) as usize
}

impl Known {
    /// Switches to `version` if it is newer. Returns whether it is the version whose views are kept.
    fn move_to(&mut self, version: (i64, i64)) -> bool {
        if version.0 >= self.version.0 && version.1 >= self.version.1 && version != self.version {
            self.version = version;
            self.by_rights.clear();
            self.whole = None;
            let (views, before): (Vec<_>, Vec<_>) = self.views.drain(..).unzip();
            self.retired.push((views, std::mem::take(&mut self.schemas)));
            self.before = before;
        }
        version == self.version
    }

    /// The kept schemas, if they are those of a view's version. The view of a running request can be older. Its schema would take
    /// the room of schemas that are still of use.
    fn schemas_of(&mut self, view: &View) -> Option<&mut KeptSchemas> {
        let is_current = self.version == (view.registry.version, view.blocks_version);
        is_current.then_some(&mut self.schemas)
    }

    /// The kept view that shows the same things as `view`. If there is no such view, `view` is kept.
    fn share(&mut self, view: View, caller: &Caller) -> Arc<View> {
        let place = self.views.iter().position(|(known, _)| known.is_as(&view));
        let (view, _) = match place {
            Some(place) => self.views.remove(place),
            None => (Arc::new(view), caller.clone()),
        };
        if self.views.len() >= VIEWS_MAX {
            self.views.remove(0);
        }
        self.views.push((Arc::clone(&view), caller.clone()));
        view
    }
}

/// After each change, builds the schemas of the callers who sent requests, if there is room. It begins with those who sent them
/// last.
async fn follow(views: Weak<Views>, app: Arc<App>) {
    let mut changes = app.watch_catalogue();
    drop(app);
    let mut callers = Vec::new();
    loop {
        let Some(here) = views.upgrade() else { return };
        // After an early stop these are the same callers again. The version before had the views of only some of them.
        if callers.is_empty() {
            callers = here.callers_to_build();
        }
        if here.build_for(&callers).await {
            callers.clear();
        }
        drop(here);
        if changes.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_app::Visible;
    use blockbase_app::schema::Registry;

    use super::*;

    #[test]
    fn a_view_of_an_older_version_takes_no_room_of_the_current_ones() {
        let view = |version: i64| {
            let registry = Registry::new(version, Vec::new(), Vec::new()).expect("a registry");
            View::new(Visible::whole(Arc::new(registry), 1, Vec::new()), true)
        };
        let (older, newer) = (view(1), view(2));
        let mut known = Known::default();
        assert!(known.move_to((1, 1)) && known.schemas_of(&older).is_some());
        assert!(known.move_to((2, 1)) && !known.move_to((1, 1)));
        assert!(known.schemas_of(&older).is_none() && known.schemas_of(&newer).is_some());
    }
}
