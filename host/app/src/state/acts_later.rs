//! The kinds of things that act later with the rights of their maker: keys, webhooks, subscriptions, tasks and blocks.
//!
//! The code for suspending, adopting and handing over uses the table in [`App::acts_later`] for all kinds, and names no kind
//! itself. The file of each kind implements [`ActsLater`]: it lists the things, and names the rights that they need.

use blockbase_schema::{Error, Registry, Result};
use blockbase_store::{Connection, Maker, Suspension, SuspensionReason, Thing, ThingKind};
use futures_util::future::BoxFuture;

use crate::caller::Caller;
use crate::state::App;

/// One kind of things.
pub(crate) trait ActsLater: Send + Sync {
    fn kind(&self) -> ThingKind;

    /// All things of the kind that have a maker and are checked one by one.
    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<SuspensionCheck>>>;

    /// Requires from the caller the rights that they need to become the maker of a thing: those that the thing needs, and perhaps
    /// more if somebody else made it. A deleted thing needs no rights.
    ///
    /// # Errors
    /// `forbidden`.
    fn carried<'a>(
        &'a self,
        app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>>;

    /// Checks that a thing can be adopted, and locks it. Returns the things that are adopted with it.
    ///
    /// # Errors
    /// `not_found`. `conflict` if the thing cannot be adopted by itself.
    fn adopted<'a>(&'a self, connection: &'a mut Connection, id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>>;
}

/// A check that requires the rights that a thing needs from its maker. The registry is the one of the transaction that has read
/// the maker's rights ([`App::registry_in`]).
pub(crate) type Needs = Box<dyn Fn(&App, &Registry, &Caller) -> Result<()> + Send + Sync>;

/// The data by which a thing is checked: its id in routes, its maker, the stored suspension, and the rights that it needs.
pub(crate) struct SuspensionCheck {
    pub(crate) id: String,
    pub(crate) maker: Maker,
    pub(crate) stored: Option<SuspensionReason>,
    pub(crate) needs: Needs,
}

/// A stored thing that acts later, with a check of the rights that it needs.
pub(crate) trait StoredThing: Send + Sync + 'static {
    /// The id in the paths of its routes.
    fn id(&self) -> &str;
    fn maker(&self) -> Maker;
    fn suspension(&self) -> Option<Suspension>;

    /// Requires from a caller the rights that the thing needs from its maker.
    ///
    /// # Errors
    /// `forbidden`.
    fn needs(&self, app: &App, caller: &Caller) -> Result<()>;
}

/// The data by which things are checked. Things without a maker are left out.
pub(crate) fn suspension_checks<T: StoredThing>(rows: Vec<T>) -> Vec<SuspensionCheck> {
    let made = rows.into_iter().filter(|row| !row.maker().is_nobody());
    made.map(|row| SuspensionCheck {
        id: row.id().to_owned(),
        maker: row.maker(),
        stored: row.suspension().map(|suspension| suspension.reason),
        needs: Box::new(move |app, _, maker| row.needs(app, maker)),
    })
    .collect()
}

impl App {
    /// The implementation for a kind.
    ///
    /// # Errors
    /// `internal` if the table does not contain the kind.
    pub(crate) fn kind_of(&self, kind: ThingKind) -> Result<&'static dyn ActsLater> {
        let found = self.acts_later.iter().find(|acts_later| acts_later.kind() == kind);
        found.copied().ok_or_else(|| Error::internal("a kind of things that act later is not in the table"))
    }

    /// Requires from `caller` the rights that a thing needs, so that the caller can become its maker.
    ///
    /// # Errors
    /// `forbidden`.
    pub(crate) async fn require_carried(&self, connection: &mut Connection, caller: &Caller, thing: &Thing) -> Result<()> {
        self.kind_of(thing.kind)?.carried(self, connection, caller, &thing.id).await
    }
}
