//! The complete schemas in memory. Their sizes together have a bound, because the schema of many objects takes much memory. Only
//! a single schema may exceed it, and is kept alone then.

use std::sync::{Arc, Weak};

use async_graphql::dynamic::Schema;
use blockbase_app::schema::Result;
use tokio::sync::OnceCell;

use crate::view::View;
use crate::view::schema::build_whole;

/// The maximum size of all kept schemas together, as [`View::schema_size`] counts it. One of these units takes 1.1 to 1.5 KiB
/// (bench/results/surfaces.md and bench/results/policies.md), so schemas within this bound take less than 200 MiB.
///
/// There is room for two schemas of 400 objects with ten fields and a few relations each. One of the two is the complete schema:
/// it is built first after each change, for the callers who may see everything. There is also room for 64 schemas of four objects
/// with 25 fields each, and no more views of one version are in memory. A schema of more than about 1,000 objects with ten fields
/// exceeds the bound.
const SIZE_MAX: usize = 128 * 1024;

/// The place of one schema. It is empty until the schema is built. A request that holds the place can use its schema, even if the
/// schema is no longer kept.
pub(crate) type SchemaPlace = Arc<OnceCell<Schema>>;

/// The schema at a place. The first call builds it.
///
/// # Errors
/// `internal`.
pub(crate) async fn schema_at(place: &SchemaPlace, view: &Arc<View>) -> Result<Schema> {
    place.get_or_try_init(|| build_whole(view)).await.cloned()
}

/// A schema that is kept.
pub(crate) struct Kept {
    view: Weak<View>,
    size: usize,
    place: SchemaPlace,
}

impl Kept {
    /// Whether a request holds the empty place to build the schema there. After a failed build, none holds it.
    fn is_being_built(&self) -> bool {
        self.place.get().is_none() && Arc::strong_count(&self.place) > 1
    }
}

/// All kept schemas: see the description of this module.
pub(crate) struct KeptSchemas {
    size_max: usize,
    /// The schema that was used last is at the end.
    kept: Vec<Kept>,
    /// Schemas that had to go. It takes milliseconds to free one with many objects, so that happens elsewhere.
    dropped: Vec<Kept>,
}

impl Default for KeptSchemas {
    fn default() -> KeptSchemas {
        KeptSchemas { size_max: SIZE_MAX, kept: Vec::new(), dropped: Vec::new() }
    }
}

impl KeptSchemas {
    /// The place of a view's schema, which now counts as the one that was used last. A view without a place gets one if there is
    /// room, otherwise `None`. A schema that is too large is kept alone.
    pub(crate) fn place(&mut self, view: &Arc<View>) -> Option<SchemaPlace> {
        self.dropped.extend(self.kept.extract_if(.., |kept| kept.view.strong_count() == 0));
        let kept = match self.kept.iter().position(|kept| std::ptr::eq(kept.view.as_ptr(), Arc::as_ptr(view))) {
            Some(index) => self.kept.remove(index),
            None => {
                let size = view.schema_size();
                if !self.kept.is_empty() && self.size() + size > self.size_max {
                    return None;
                }
                Kept { view: Arc::downgrade(view), size, place: SchemaPlace::default() }
            }
        };
        let place = Arc::clone(&kept.place);
        self.kept.push(kept);
        Some(place)
    }

    /// The place of a view's schema. The schemas that were used longest ago make room for it, but none that is still being built,
    /// because its work would be lost. If those leave too little room, the place is not kept.
    pub(crate) fn make_room(&mut self, view: &Arc<View>) -> SchemaPlace {
        loop {
            if let Some(place) = self.place(view) {
                return place;
            }
            let being_built: usize = self.kept.iter().filter(|kept| kept.is_being_built()).map(|kept| kept.size).sum();
            let oldest = self.kept.iter().position(|kept| !kept.is_being_built());
            match oldest.filter(|_| being_built == 0 || being_built + view.schema_size() <= self.size_max) {
                Some(index) => self.dropped.push(self.kept.remove(index)),
                None => return SchemaPlace::default(),
            }
        }
    }

    /// The schemas that had to go since the last call.
    pub(crate) fn take_dropped(&mut self) -> Vec<Kept> {
        std::mem::take(&mut self.dropped)
    }

    fn size(&self) -> usize {
        self.kept.iter().map(|kept| kept.size).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use async_graphql::{Request, Value};
    use blockbase_app::Visible;
    use blockbase_app::schema::{Registry, StoredObject};
    use serde_json::json;

    use super::*;
    use crate::view::schema::{ValidateOnly, build};

    /// The objects `sheet1`, `sheet2` and so on. Half of the fields are numbers.
    fn registry(objects: i64, fields: u32) -> Arc<Registry> {
        let field = |number: u32| {
            let kind = if number.is_multiple_of(2) { "integer" } else { "text" };
            json!({ "name": format!("f{number}"), "type": kind })
        };
        let object = |id: i64| {
            let definition = json!({ "name": format!("sheet{id}"), "fields": (1..=fields).map(field).collect::<Vec<_>>() });
            let definition = serde_json::from_value(definition).expect("a definition");
            StoredObject { id, revision: 1, keys: (1..=fields).collect(), definition, since: Default::default() }
        };
        Arc::new(Registry::new(1, (1..=objects).map(object).collect(), Vec::new()).expect("a registry"))
    }

    fn view(registry: &Arc<Registry>, objects: RangeInclusive<i64>) -> Arc<View> {
        let names = objects.map(|id| (format!("sheet{id}"), true)).collect();
        Arc::new(View::new(Visible::whole(Arc::clone(registry), 1, names), true))
    }

    async fn answer(place: &SchemaPlace, view: &Arc<View>, query: String) -> Value {
        let answer = schema_at(place, view).await.expect("a schema").execute(Request::new(query)).await;
        assert!(answer.errors.is_empty(), "{:?}", answer.errors);
        answer.data
    }

    /// Whether introspection shows the type of an object.
    async fn shows(place: &SchemaPlace, view: &Arc<View>, object: i64) -> bool {
        let name = format!("Sheet{object}");
        answer(place, view, format!("{{ __type(name: \"{name}\") {{ name }} }}")).await.to_string().contains(&name)
    }

    #[tokio::test]
    async fn the_schemas_that_were_used_last_are_kept_within_the_bound() {
        let registry = registry(40, 3);
        let views: Vec<Arc<View>> = (1..=40).map(|object| view(&registry, object..=object)).collect();
        let size = views[0].schema_size();
        let mut schemas = KeptSchemas { size_max: 4 * size, ..KeptSchemas::default() };
        for (object, view) in (1..).zip(&views) {
            let place = schemas.make_room(view);
            assert!(shows(&place, view, object).await && !shows(&place, view, object + 1).await, "{object}");
            assert!(schemas.size() <= 4 * size, "{object}");
        }
        assert_eq!((schemas.kept.len(), schemas.take_dropped().len()), (4, 36));
        // A request that can do without does not drop the schema of another view, but keeps its own in use.
        assert!(schemas.place(&views[0]).is_none());
        assert!(schemas.place(&views[36]).is_some_and(|place| place.get().is_some()));
        // A schema that was dropped is built again. Then the one that was used longest ago is missing.
        let again = schemas.make_room(&views[0]);
        assert!(again.get().is_none());
        assert!(shows(&again, &views[0], 1).await && !shows(&again, &views[0], 2).await);
        assert_eq!((schemas.kept.len(), schemas.size(), schemas.take_dropped().len()), (4, 4 * size, 1));
        assert!(schemas.place(&views[37]).is_none() && schemas.place(&views[36]).is_some());
        // The schemas of views that are gone leave room.
        drop(views);
        let last = view(&registry, 1..=2);
        assert!(schemas.place(&last).is_some());
        assert_eq!((schemas.kept.len(), schemas.take_dropped().len()), (1, 4));
    }

    #[tokio::test]
    async fn a_schema_above_the_bound_is_kept_alone() {
        let registry = registry(2, 3);
        let views = [view(&registry, 1..=1), view(&registry, 2..=2)];
        let mut schemas = KeptSchemas { size_max: 1, ..KeptSchemas::default() };
        let place = schemas.place(&views[0]).expect("there is no other schema");
        assert!(shows(&place, &views[0], 1).await);
        assert!(schemas.place(&views[1]).is_none());
        assert!(shows(&schemas.make_room(&views[1]), &views[1], 2).await);
        assert_eq!((schemas.kept.len(), schemas.dropped.len()), (1, 1));
        // A request that holds the place of a dropped schema can still use it.
        assert!(place.get().is_some() && shows(&place, &views[0], 1).await);
    }

    #[tokio::test]
    async fn a_schema_that_is_being_built_is_not_dropped() {
        let registry = registry(4, 3);
        let views: Vec<Arc<View>> = (1..=4).map(|object| view(&registry, object..=object)).collect();
        let size = views[0].schema_size();
        let mut schemas = KeptSchemas { size_max: 2 * size, ..KeptSchemas::default() };
        let first = schemas.make_room(&views[0]);
        assert!(shows(&schemas.make_room(&views[1]), &views[1], 2).await);
        // The first schema is the one that was used longest ago, but it is not yet built. So the second one goes.
        let third = schemas.make_room(&views[2]);
        assert_eq!((schemas.kept.len(), schemas.take_dropped().len()), (2, 1));
        // Two schemas are being built now, so the fourth one is not kept.
        let fourth = schemas.make_room(&views[3]);
        assert!(shows(&fourth, &views[3], 4).await && schemas.place(&views[3]).is_none());
        assert_eq!((schemas.kept.len(), schemas.take_dropped().len()), (2, 0));
        // When the first schema is built, it can go. The third one stays although nobody builds it now: it was used later.
        assert!(shows(&first, &views[0], 1).await);
        drop(third);
        assert!(shows(&schemas.make_room(&views[3]), &views[3], 4).await);
        assert!(schemas.place(&views[0]).is_none() && schemas.place(&views[2]).is_some());
        // A place that nobody builds can go as well.
        assert!(shows(&schemas.make_room(&views[3]), &views[3], 4).await);
        schemas.make_room(&views[0]);
        assert!(schemas.place(&views[2]).is_none() && schemas.place(&views[3]).is_some());
    }

    #[tokio::test]
    async fn a_document_that_introspects_is_valid_for_a_schema_without_objects() {
        let view = view(&registry(2, 3), 1..=2);
        let schema = build(&view, &|_| false).expect("a schema");
        let query = "query Q($name: String!) {
            __schema { queryType { name } types { ...T } directives { name locations args { name type { ...T } defaultValue } } }
            __type(name: $name) { ...T }
        }
        fragment T on __Type {
            kind name fields(includeDeprecated: true) { name } enumValues { name } inputFields { name } possibleTypes { name }
        }";
        let valid = schema.execute(Request::new(query).data(ValidateOnly)).await;
        assert!(valid.errors.is_empty(), "{:?}", valid.errors);
        let invalid = schema.execute(Request::new("{ __schema { nothing } __type { name } }").data(ValidateOnly)).await;
        assert_eq!(invalid.errors.len(), 2, "{:?}", invalid.errors);
    }

    #[tokio::test]
    async fn the_size_of_a_schema_is_about_the_number_of_its_members() {
        for (objects, fields) in [(3, 40), (20, 5), (60, 1)] {
            let view = view(&registry(objects, fields), 1..=objects);
            let place = KeptSchemas::default().make_room(&view);
            let query = "{ __schema { types { fields { name args { name } } inputFields { name } enumValues { name } } } }";
            let types = serde_json::to_string(&answer(&place, &view, query.to_owned()).await).expect("JSON");
            let (members, size) = (types.matches("\"name\":").count(), view.schema_size());
            assert!(members.abs_diff(size) * 4 < members, "{objects} objects, {fields} fields: {members} members, size {size}");
        }
    }
}
