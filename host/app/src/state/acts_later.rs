//! The kinds of things that act later in the name of their maker: keys, webhooks, subscriptions, tasks and blocks.
//!
//! Suspending, adopting and handing over work on all kinds through the table in [`App::acts_later`], and know no kind by name.
//! The file of each kind implements [`ActsLater`]: it lists the things, and says which rights they need and carry.

use blockbase_schema::{Error, Result};
use blockbase_store::{Connection, Made, Maker, Suspension, SuspensionReason, Thing};
use futures_util::future::BoxFuture;

use crate::caller::Caller;
use crate::state::App;

/// One kind.
pub(crate) trait ActsLater: Send + Sync {
    fn kind(&self) -> Made;

    /// All of the kind that keep a maker and are looked after one by one.
    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<Kept>>>;

    /// Demands that the caller holds the rights that a thing carries, so that it can become theirs. Nothing is demanded for one that
    /// is not there any more.
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

    /// Makes sure that a thing can be adopted, and holds it: what comes along with it.
    ///
    /// # Errors
    /// `not_found`; `conflict` if it cannot be adopted by itself.
    fn adopted<'a>(&'a self, connection: &'a mut Connection, id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>>;
}

/// Demands of a maker what a thing needs.
pub(crate) type Needs = Box<dyn Fn(&App, &Caller) -> Result<()> + Send + Sync>;

/// What is looked after of a thing: what its routes name it by, its maker, the stored suspension, and what it needs.
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) maker: Maker,
    pub(crate) stored: Option<SuspensionReason>,
    pub(crate) needs: Needs,
}

/// A stored thing that acts later and shows by itself what it needs.
pub(crate) trait StoredThing: Send + Sync + 'static {
    /// The name in the paths of its routes.
    fn id(&self) -> &str;
    fn maker(&self) -> Maker;
    fn suspension(&self) -> Option<Suspension>;

    /// Demands of a caller what it needs of its maker.
    ///
    /// # Errors
    /// `forbidden`.
    fn needs(&self, app: &App, caller: &Caller) -> Result<()>;
}

/// What is looked after of things: all but those that nobody made.
pub(crate) fn kept<T: StoredThing>(rows: Vec<T>) -> Vec<Kept> {
    let made = rows.into_iter().filter(|row| !row.maker().is_nobody());
    made.map(|row| Kept {
        id: row.id().to_owned(),
        maker: row.maker(),
        stored: row.suspension().map(|suspension| suspension.reason),
        needs: Box::new(move |app, maker| row.needs(app, maker)),
    })
    .collect()
}

/// Demands the rights that a thing carries, for kinds that carry the rights that they need. A deleted thing carries none.
///
/// # Errors
/// `forbidden`.
pub(crate) fn carried<T: StoredThing>(row: Option<T>, app: &App, caller: &Caller) -> Result<()> {
    row.map_or(Ok(()), |row| row.needs(app, caller))
}

impl App {
    /// The kind as it acts later.
    ///
    /// # Errors
    /// `internal` if the table lacks it.
    pub(crate) fn kind_of(&self, kind: Made) -> Result<&'static dyn ActsLater> {
        let found = self.acts_later.iter().find(|acts_later| acts_later.kind() == kind);
        found.copied().ok_or_else(|| Error::internal("a kind of things that act later is not in the table"))
    }

    /// Demands that `caller` holds the rights that a thing carries, so that it can become theirs.
    ///
    /// # Errors
    /// `forbidden`.
    pub(crate) async fn require_carried(&self, connection: &mut Connection, caller: &Caller, thing: &Thing) -> Result<()> {
        self.kind_of(thing.kind)?.carried(self, connection, caller, &thing.id).await
    }
}
