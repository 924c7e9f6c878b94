//! From a request and an access decision to SQL: access, request, plan, sql.
//!
//! This crate does no I/O and must not know of drivers, HTTP or accounts. A plan cannot be made without an [`Access`], and only
//! [`Permissions::decide`] leads to an [`Access`]. So a query without a check of rights cannot be written. All identifiers in the
//! SQL come from the registry, and every value is bound.
#![forbid(unsafe_code)]

pub mod access;
pub mod aggregate;
pub mod condition;
pub mod cursor;
pub mod ddl;
pub mod expand;
pub mod limits;
pub mod operator;
pub mod plan;
pub mod predicate;
pub mod request;
pub mod sql;
pub mod topic;

mod dialect;
mod filter;
mod parameter;
mod period;
mod zone;

pub use access::{
    Access, Action, Bounds, Check, Clause, Compiled, Decision, Demand, FieldList, Fields, Grant, GrantContext, Known,
    KnownObjects, Owners, Permissions, Reading, RowPolicy, Scope, Seen, Shapes, Where, not_readable, not_writable,
    number_of_column, read_condition,
};
pub use aggregate::{AggregateRequest, Call, Function, Named};
pub use condition::{Condition, Variables};
pub use cursor::{ConnectionPaging, CursorPaging, CursorParameter, CursorsOf, End, PageFlags, Part, Position};
pub use dialect::Dialect;
pub use expand::{Related, expand_paths};
pub use filter::{Filter, FilterValue};
pub use operator::{Operand, Operator};
pub use parameter::ListParameter;
pub use period::Period;
pub use request::{ExportRequest, ListRequest, Paging, PagingParameters};
pub use sql::{Param, SqlText, Statement};
pub use topic::{TopicFilter, TopicPattern};
pub use zone::Zone;
