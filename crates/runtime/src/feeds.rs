//! Named input values of one run.

use crate::HostTensor;

/// Named input values of one run, in insertion order; names are unique.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feeds(Vec<(String, HostTensor)>);

impl Feeds {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of input `name`; returns the value that it replaces.
    pub fn insert(&mut self, name: impl Into<String>, tensor: HostTensor) -> Option<HostTensor> {
        let name = name.into();
        if let Some(slot) = self.0.iter_mut().find(|(n, _)| *n == name) {
            return Some(std::mem::replace(&mut slot.1, tensor));
        }
        self.0.push((name, tensor));
        None
    }

    /// The value of input `name`.
    pub fn get(&self, name: &str) -> Option<&HostTensor> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, t)| t)
    }

    /// All values, in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HostTensor)> {
        self.0.iter().map(|(n, t)| (n.as_str(), t))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: Into<String>> FromIterator<(S, HostTensor)> for Feeds {
    fn from_iter<I: IntoIterator<Item = (S, HostTensor)>>(iter: I) -> Self {
        let mut feeds = Self::new();
        for (name, tensor) in iter {
            feeds.insert(name, tensor);
        }
        feeds
    }
}
