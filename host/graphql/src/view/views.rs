//! The views of the callers of this moment, and their schemas, built in the background when something changes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use blockbase_app::schema::Resource;
use blockbase_app::{Action, App, Authority, Caller, CallerPermissions};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::view::View;
use crate::view::documents::Documents;

/// Views of one version that are kept. There is one for each set of roles that sees something else.
const VIEWS_MAX: usize = 64;
/// Callers whose view is known without looking at their rights again.
const CALLERS_MAX: usize = 4096;
/// Views whose schemas are built anew when something changes: those that were used last.
const REBUILT_MAX: usize = 16;

/// Documents that are parsed and validated at a time.
const PREPARING_MAX: usize = 2;

/// See the module.
pub(crate) struct Views {
    app: Arc<App>,
    known: Mutex<Known>,
    /// Documents that were valid for some view: for another one a look at what differs is enough.
    pub(crate) valid: Documents,
    /// Places of documents that are parsed and validated at a time. One is held until its work has ended, whoever still waits for it.
    pub(crate) preparing: Arc<Semaphore>,
}

#[derive(Default)]
struct Known {
    version: (i64, i64),
    /// That of callers who may know of everything.
    whole: Option<Arc<View>>,
    /// By the address of the rights, which are kept so that it stays theirs.
    by_rights: HashMap<usize, (Arc<CallerPermissions>, Weak<View>)>,
    /// The one used last at the end, with somebody who sees it.
    views: Vec<(Arc<View>, Caller)>,
    /// Who used the views of the version before.
    before: Vec<Caller>,
    /// Those views. A schema of many objects takes milliseconds to go, for which no request waits.
    retired: Vec<Arc<View>>,
}

impl Views {
    /// Also begins to follow the changes, as long as it is there.
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

    /// What a caller sees now.
    pub(crate) fn of(&self, caller: &Caller) -> Arc<View> {
        let version = self.app.catalogue_version();
        let rights = match &caller.authority {
            Authority::Own(rights) => Some(rights),
            Authority::Block { .. } => None,
        };
        let sees_all = caller.holds(Resource::Objects, Action::Read) && caller.holds(Resource::Blocks, Action::Read);
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
            // Another request has met a newer version meanwhile.
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

    /// Builds the whole schema of a view in the background, where it is not built yet.
    pub(crate) fn prepare(&self, view: &Arc<View>) {
        if view.ready_schema().is_some() {
            return;
        }
        let view = Arc::clone(view);
        tokio::spawn(async move {
            if let Err(error) = view.whole_schema().await {
                blockbase_app::log_cause(&error);
            }
        });
    }
}

fn address(rights: &Arc<CallerPermissions>) -> usize {
    Arc::as_ptr(rights) as usize
}

impl Known {
    /// Goes on to a newer version; whether `version` is the one that is kept.
    fn move_to(&mut self, version: (i64, i64)) -> bool {
        if version.0 >= self.version.0 && version.1 >= self.version.1 && version != self.version {
            self.version = version;
            self.by_rights.clear();
            self.whole = None;
            let (retired, before): (Vec<_>, Vec<_>) = self.views.drain(..).unzip();
            self.retired.extend(retired);
            self.before = before;
        }
        version == self.version
    }

    /// The view that is kept for those who see the same.
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

/// Builds the schemas that were in use anew after each change, those used last first.
async fn follow(views: Weak<Views>, app: Arc<App>) {
    let mut changes = app.watch_catalogue();
    drop(app);
    loop {
        let Some(here) = views.upgrade() else { return };
        let mut used: Vec<Caller> = {
            let known = here.known.lock();
            known.views.iter().map(|(_, caller)| caller).chain(&known.before).rev().cloned().collect()
        };
        used.truncate(REBUILT_MAX - 1);
        // Whoever may see everything: an admin, as a rule the first to ask.
        used.insert(0, Caller::system());
        for caller in used {
            let view = here.of(&caller);
            if let Err(error) = view.whole_schema().await {
                blockbase_app::log_cause(&error);
            }
        }
        let retired = std::mem::take(&mut here.known.lock().retired);
        tokio::task::spawn_blocking(move || drop(retired));
        drop(here);
        if changes.changed().await.is_err() {
            return;
        }
    }
}
