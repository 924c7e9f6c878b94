//! Objects, fields, relationships, and plans to change them.

pub(crate) mod change;
pub(crate) mod document;
pub(crate) mod fields;
pub(crate) mod objects;
pub(crate) mod relationships;

use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .get("/api/v1/objects", objects::list)
        .post("/api/v1/objects", objects::create)
        .get("/api/v1/objects/{name}", objects::get)
        .patch("/api/v1/objects/{name}", objects::update)
        .delete("/api/v1/objects/{name}", objects::delete)
        .get("/api/v1/objects/{name}/dependents", objects::dependents)
        .post("/api/v1/objects/{name}/fields", fields::add)
        .patch("/api/v1/objects/{name}/fields/{field}", fields::alter)
        .delete("/api/v1/objects/{name}/fields/{field}", fields::drop)
        .get("/api/v1/relationships", relationships::list)
        .post("/api/v1/relationships", relationships::create)
        .delete("/api/v1/relationships/{id}", relationships::delete)
        .get("/api/v1/schema", objects::schema)
        .get("/api/v1/schema/migrations", objects::migrations)
}
