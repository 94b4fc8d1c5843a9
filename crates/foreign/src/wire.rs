//! TASO's messages, as far as they are read. All numbers are optional here, so that missing ones
//! are detected.

/// One rewrite.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RuleMessage {
    /// Operators that are replaced, in topological order.
    #[prost(message, repeated, tag = "1")]
    pub source: Vec<OperatorMessage>,
    /// Operators that replace them.
    #[prost(message, repeated, tag = "2")]
    pub target: Vec<OperatorMessage>,
    /// The correspondence of results.
    #[prost(message, repeated, tag = "3")]
    pub outputs: Vec<OutputMessage>,
}

/// One operator.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OperatorMessage {
    /// Number of its type.
    #[prost(int32, optional, tag = "1")]
    pub kind: Option<i32>,
    /// Operands.
    #[prost(message, repeated, tag = "2")]
    pub operands: Vec<TensorMessage>,
    /// Parameters.
    #[prost(message, repeated, tag = "3")]
    pub parameters: Vec<ParameterMessage>,
}

/// A result of an operator, or a variable.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct TensorMessage {
    /// Index of an operator on the same side; a variable if negative.
    #[prost(int32, optional, tag = "1")]
    pub operator: Option<i32>,
    /// Which of its results.
    #[prost(int32, optional, tag = "2")]
    pub result: Option<i32>,
}

/// A parameter of an operator.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct ParameterMessage {
    /// Number of its name.
    #[prost(int32, optional, tag = "1")]
    pub key: Option<i32>,
    /// Value.
    #[prost(int32, optional, tag = "2")]
    pub value: Option<i32>,
}

/// A result of the source and its counterpart in the target.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct OutputMessage {
    /// Operator of the source.
    #[prost(int32, optional, tag = "1")]
    pub source_operator: Option<i32>,
    /// Operator of the target.
    #[prost(int32, optional, tag = "2")]
    pub target_operator: Option<i32>,
    /// Which result of the source's operator.
    #[prost(int32, optional, tag = "3")]
    pub source_result: Option<i32>,
    /// Which result of the target's operator.
    #[prost(int32, optional, tag = "4")]
    pub target_result: Option<i32>,
}
