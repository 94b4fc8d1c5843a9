//! Why there is no e-graph, or no extraction. Always the input's fault.

/// What is wrong with an e-graph.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EGraphError {
    /// The text ends too early.
    #[error("the file ends in the middle of the e-graph, at line {line}")]
    CutOff {
        /// Line of the end, from 1.
        line: usize,
    },
    /// The text is not an e-graph in the `egraph-serialize` format.
    #[error("not an e-graph in JSON: {message}")]
    Format {
        /// What was expected, and where.
        message: String,
    },
    /// Two nodes have one name.
    #[error("node `{node}` is defined twice")]
    Twice {
        /// The name.
        node: String,
    },
    /// A child is not a node of the e-graph.
    #[error("node `{node}` has the child `{child}`, which is not defined")]
    Child {
        /// The parent.
        node: String,
        /// The missing child.
        child: String,
    },
    /// A cost is negative, infinite or not a number.
    #[error("node `{node}` costs {cost}; a cost is a finite number that is not negative")]
    Cost {
        /// The node.
        node: String,
        /// Its cost.
        cost: f64,
    },
    /// There is nothing to extract.
    #[error("the e-graph has no root classes")]
    NoRoots,
    /// A root class is empty.
    #[error("the root class `{class}` has no nodes")]
    Root {
        /// The class.
        class: String,
    },
    /// There are more nodes or children than 32-bit numbers.
    #[error("the e-graph has {count} nodes and children; at most {} can be handled", u32::MAX / 2)]
    TooLarge {
        /// Number of nodes and children.
        count: usize,
    },
    /// A root class contains only infinite terms.
    #[error("the root class `{class}` has no finite term: each of its nodes needs itself, or is subsumed")]
    Infinite {
        /// The class.
        class: String,
    },
}

impl EGraphError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            EGraphError::CutOff { .. } => "fetch or write the file again",
            EGraphError::Format { .. } => "write it with the crate egraph-serialize, as egg, egglog and extraction-gym do",
            EGraphError::Twice { .. } | EGraphError::Child { .. } => "write the e-graph again; names of nodes must be unique",
            EGraphError::Cost { .. } => "shift the costs so that the least is 0",
            EGraphError::NoRoots => "list the classes to extract in `root_eclasses`",
            EGraphError::Root { .. } => "`root_eclasses` must list classes that a node names as its `eclass`",
            EGraphError::TooLarge { .. } => "limit the saturation to fewer nodes",
            EGraphError::Infinite { .. } => "add the term that the e-graph was made from, or choose another root",
        }
    }
}

/// What is wrong with a choice of nodes. A defect of the method that made it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A class that is needed has no node.
    #[error("class `{class}` is needed, and none of its nodes is chosen")]
    Missing {
        /// The class.
        class: String,
    },
    /// A class has two nodes.
    #[error("class `{class}` has two chosen nodes")]
    Twice {
        /// The class.
        class: String,
    },
    /// The choice is cyclic.
    #[error("the choice is cyclic: class `{class}` needs itself")]
    Cyclic {
        /// A class of the cycle.
        class: String,
    },
    /// A node does not exist or is subsumed.
    #[error("node number {node} is not in the e-graph, or is subsumed")]
    NoNode {
        /// The number.
        node: usize,
    },
}
