//! The form of a condition: the condition without its values.

use std::sync::Arc;

use blockbase_schema::Value;

use super::{Condition, Related, Scope};
use crate::predicate::{Predicate, Test};

impl Condition {
    /// The condition without its values. If two conditions on one object have the same form, their SQL differs only in the values
    /// that it binds.
    ///
    /// `None` if a test has a list of values or searches through texts, or if only some of the related rows count.
    pub fn form(&self) -> Option<Condition> {
        let forms_of = |parts: &[Condition]| parts.iter().map(Condition::form).collect::<Option<Vec<Condition>>>();
        Some(match self {
            Condition::Test(predicate) => Condition::Test(form_of(predicate)?),
            Condition::Not(predicate) => Condition::Not(form_of(predicate)?),
            Condition::All(parts) => Condition::All(forms_of(parts)?),
            Condition::Any(parts) => Condition::Any(forms_of(parts)?),
            Condition::Related(related) if related.scope == Scope::All => Condition::Related(Box::new(Related {
                key: related.key.clone(),
                shape: related.shape,
                object: Arc::clone(&related.object),
                scope: Scope::All,
                quantifier: related.quantifier,
                condition: related.condition.form()?,
                audience: related.audience,
            })),
            Condition::Related(_) => return None,
        })
    }
}

/// Does the same for a test. It gets null in place of its value.
fn form_of(predicate: &Predicate) -> Option<Predicate> {
    let test = match &predicate.test {
        // Such a test has other SQL than one with a value that the column can have.
        Test::Compare(_, Value::DecimalBetween { .. }) => return None,
        Test::Compare(comparison, _) => Test::Compare(*comparison, Value::Null),
        Test::IsNull => Test::IsNull,
        Test::IsNotNull => Test::IsNotNull,
        Test::In { .. } | Test::Contains { .. } => return None,
    };
    Some(Predicate { column: predicate.column, test })
}
