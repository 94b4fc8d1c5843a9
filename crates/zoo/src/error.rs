//! Why a network could not be built.

/// Why a network could not be built. Always the request's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZooError {
    /// No entry has this name.
    #[error("the zoo has no network `{name}`; the nearest name is `{nearest}`")]
    Unknown {
        /// The requested name.
        name: String,
        /// The entry with the most similar name.
        nearest: &'static str,
    },
    /// The network has no batch dimension that could vary.
    #[error("network `{name}` has no batch dimension; build it with a fixed shape")]
    NoDynamicBatch {
        /// The name of the entry.
        name: &'static str,
    },
    /// The weights exceed what a file of the format holds, 2 GiB.
    #[error("the weights of network `{name}` exceed the 2 GiB that one file holds; searches take it by name")]
    TooLarge {
        /// The name of the entry.
        name: &'static str,
    },
    /// The network is made for one size of images.
    #[error("network `{name}` takes images or recordings of one size only, or none; build it with a fixed shape")]
    NoDynamicField {
        /// The name of the entry.
        name: &'static str,
    },
}
