//! Values that are computed once for each version of the schema.

/// Values that were made from one version of the schema.
#[derive(Debug, Default)]
pub(super) struct OfVersion<T> {
    version: i64,
    kept: T,
}

impl<T: Default> OfVersion<T> {
    /// The values that were made from `version`. Values of an older version are dropped. `None` if there are already values of a
    /// newer version.
    pub(super) fn of(&mut self, version: i64) -> Option<&mut T> {
        if self.version < version {
            *self = OfVersion { version, kept: T::default() };
        }
        (self.version == version).then_some(&mut self.kept)
    }
}
