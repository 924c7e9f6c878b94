//! The condition of a grant, split into the conjuncts by which grants are compared.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::clause::Clause;
use crate::condition::{Variable, Variables};

/// The condition of a grant, with its conjuncts. Grants are compared by their conjuncts.
#[derive(Debug, PartialEq)]
pub(super) struct Policy {
    pub(super) clause: Clause,
    pub(super) conjuncts: BTreeSet<String>,
    /// Whether the condition depends on the time of the call.
    pub(super) is_of_moment: bool,
}

impl Policy {
    pub(super) fn of(clause: Clause) -> Policy {
        let mut policy = Policy { conjuncts: clause.conjuncts(), clause, is_of_moment: false };
        policy.is_of_moment = policy.names(Variable::Now) || policy.names(Variable::Today);
        policy
    }

    fn names(&self, variable: Variable) -> bool {
        let quoted = format!("\"{}\"", variable.name());
        self.conjuncts.iter().any(|conjunct| conjunct.contains(&quoted))
    }

    /// The values of the variables that the condition names, without the other variables. So the result is the same for two
    /// callers who differ only in other variables.
    pub(super) fn values_of(&self, subject: &Variables) -> Variables {
        Variables {
            user_id: subject.user_id.clone().filter(|_| self.names(Variable::UserId)),
            email: subject.email.clone().filter(|_| self.names(Variable::UserEmail)),
            roles: subject.roles.clone().filter(|_| self.names(Variable::UserRoles)),
            key_id: subject.key_id.clone().filter(|_| self.names(Variable::KeyId)),
            now: 0,
        }
    }
}

/// One part of the condition that a grant sets on rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Own,
    Clause(Arc<Policy>),
}

impl Part {
    /// Whether the part names a variable.
    pub(super) fn names(&self, variable: Variable) -> bool {
        match self {
            Part::Own => false,
            Part::Clause(policy) => policy.names(variable),
        }
    }
}
