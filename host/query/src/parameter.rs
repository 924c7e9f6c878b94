//! The parameters that shape a list, beside its filters.

use blockbase_schema::listed;

listed! {
    /// A parameter that shapes a list, beside its filters. Parsing and the documents of every surface iterate over them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ListParameter {
        Search,
        Where,
        Sort,
        Page,
        PageSize,
        Limit,
        Offset,
        Cursor,
        After,
        Before,
        Select,
        Expand,
        Count,
    }
}

impl ListParameter {
    /// The name in REST, in GraphQL and in the JSON form.
    pub const fn name(self) -> &'static str {
        match self {
            ListParameter::Search => "search",
            ListParameter::Where => "where",
            ListParameter::Sort => "sort",
            ListParameter::Page => "page",
            ListParameter::PageSize => "pageSize",
            ListParameter::Limit => "limit",
            ListParameter::Offset => "offset",
            ListParameter::Cursor => "cursor",
            ListParameter::After => "after",
            ListParameter::Before => "before",
            ListParameter::Select => "select",
            ListParameter::Expand => "expand",
            ListParameter::Count => "count",
        }
    }

    /// A second name in REST.
    pub const fn alias(self) -> Option<&'static str> {
        match self {
            ListParameter::Search => Some("q"),
            ListParameter::Where
            | ListParameter::Sort
            | ListParameter::Page
            | ListParameter::PageSize
            | ListParameter::Limit
            | ListParameter::Offset
            | ListParameter::Cursor
            | ListParameter::After
            | ListParameter::Before
            | ListParameter::Select
            | ListParameter::Expand
            | ListParameter::Count => None,
        }
    }

    /// The smallest number that the parameter accepts. `None` if it does not take a number. Only parameters of the window take
    /// numbers.
    pub const fn least(self) -> Option<u64> {
        match self {
            ListParameter::Page | ListParameter::PageSize | ListParameter::Limit => Some(1),
            ListParameter::Offset => Some(0),
            ListParameter::Search
            | ListParameter::Where
            | ListParameter::Sort
            | ListParameter::Cursor
            | ListParameter::After
            | ListParameter::Before
            | ListParameter::Select
            | ListParameter::Expand
            | ListParameter::Count => None,
        }
    }

    /// Whether a field with the parameter's name replaces it in a query string. `<name>=` is then a filter on that field, as it was
    /// before this parameter existed.
    pub const fn yields_to_field(self) -> bool {
        match self {
            ListParameter::Where | ListParameter::Cursor | ListParameter::After | ListParameter::Before => true,
            ListParameter::Search
            | ListParameter::Sort
            | ListParameter::Page
            | ListParameter::PageSize
            | ListParameter::Limit
            | ListParameter::Offset
            | ListParameter::Select
            | ListParameter::Expand
            | ListParameter::Count => false,
        }
    }

    /// Whether the parameter is about cursors.
    pub const fn is_of_cursors(self) -> bool {
        matches!(self, ListParameter::Cursor | ListParameter::After | ListParameter::Before)
    }

    /// The parameter of this name in REST.
    pub fn named(name: &str) -> Option<ListParameter> {
        ListParameter::ALL.iter().copied().find(|parameter| parameter.names().any(|known| known == name))
    }

    /// Its names in REST. A field with one of these names can only be filtered with an explicit operator, unless the parameter yields
    /// to it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [self.name()].into_iter().chain(self.alias())
    }

    /// The parameters that select the window of the list.
    pub fn of_window() -> impl Iterator<Item = ListParameter> {
        ListParameter::ALL.iter().copied().filter(|parameter| parameter.least().is_some())
    }
}
