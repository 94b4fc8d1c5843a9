//! A small builder of ONNX graphs that knows the shape of every value.
//!
//! Layers are methods that take and return values. A scope (see [`Builder::within`]) gives nodes
//! and weights their names. A wrong network definition is a bug in this crate, so mismatched shapes
//! are assertion failures.

mod activation;
mod attribute;
mod blank;
mod conv;
mod elementwise;
mod layout;
mod linear;
mod norm;
mod pool;
mod recurrent;
mod sequence;
mod shape;

use bytes::Bytes;
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    catalog::{Element, Entry},
    options::{Options, Weights},
    random::Stream,
};

use blank::Blank;
pub(crate) use conv::Conv;
pub(crate) use pool::Pool;
pub(crate) use recurrent::Cell;
pub(crate) use shape::{Dim, Shape, fixed};

/// Version of the ONNX file format that the zoo writes.
const IR_VERSION: i64 = 8;
/// Filters with fewer elements than this are not centered: little of them would be left.
const SHORT_FILTER: i64 = 26;
/// Version of the default operator set that the zoo writes.
const OPSET: i64 = 17;

/// A tensor in the graph under construction.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    name: String,
    /// Element type.
    pub(crate) element: Element,
    /// Dimensions, outermost first.
    pub(crate) shape: Shape,
}

impl Value {
    /// The dimension at `axis`, which must not be the batch.
    pub(crate) fn size(&self, axis: usize) -> i64 {
        self.shape[axis].size()
    }

    /// The number of dimensions.
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }
}

/// One level of names.
struct Scope {
    name: String,
    /// The weights below are this slice of the weights that the same network would have without the
    /// scope.
    part: Option<u64>,
}

/// Collects nodes and weights of one graph.
pub(crate) struct Builder {
    options: Options,
    blank: Blank,
    scopes: Vec<Scope>,
    node_names: FxHashMap<String, usize>,
    weight_names: FxHashSet<String>,
    constants: FxHashMap<(Element, Vec<i64>, Vec<u8>), Value>,
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
    values: Vec<ValueInfoProto>,
}

impl Builder {
    /// An empty graph.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            blank: Blank::default(),
            scopes: Vec::new(),
            node_names: FxHashMap::default(),
            weight_names: FxHashSet::default(),
            constants: FxHashMap::default(),
            nodes: Vec::new(),
            initializers: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The value of a graph input.
    pub(crate) fn input(&self, input: &crate::Input) -> Value {
        let mut shape = fixed(input.dims);
        if self.options.dynamic_batch {
            shape[0] = Dim::Batch(1);
        }
        Value { name: input.name.to_owned(), element: input.element, shape }
    }

    /// Runs `body` with `name` prefixed to the names of all nodes and weights.
    pub(crate) fn within<T>(&mut self, name: impl Into<String>, body: impl FnOnce(&mut Self) -> T) -> T {
        self.enter(Scope { name: name.into(), part: None }, body)
    }

    /// Like [`Self::within`], but every weight created by `body` is slice number `part`, along its
    /// first axis, of the weight that would have the same name outside this scope.
    pub(crate) fn within_part<T>(&mut self, name: impl Into<String>, part: u64, body: impl FnOnce(&mut Self) -> T) -> T {
        self.enter(Scope { name: name.into(), part: Some(part) }, body)
    }

    fn enter<T>(&mut self, scope: Scope, body: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(scope);
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// A trained tensor, uniform in `[low, high)`.
    pub(crate) fn weight(&mut self, name: &str, dims: &[i64], low: f32, high: f32) -> Value {
        self.trained(name, dims, |stream, start, count| stream.bytes(start, count, low, high))
    }

    /// A trained tensor in `[-bound, bound)`, one filter per element of its first axis. The
    /// elements of a filter sum to zero, so that the common part of its arguments, positive after a
    /// ReLU, does not drown out the differences between inputs. Filters of fewer than
    /// [`SHORT_FILTER`] elements keep their sum.
    pub(crate) fn filters(&mut self, name: &str, dims: &[i64], bound: f32) -> Value {
        let length = dims[1..].iter().product::<i64>();
        if length < SHORT_FILTER {
            return self.weight(name, dims, -bound, bound);
        }
        self.trained(name, dims, |stream, start, count| stream.centered_rows(start, count, length as usize, bound))
    }

    fn trained(&mut self, name: &str, dims: &[i64], fill: impl Fn(Stream, u64, usize) -> Vec<u8>) -> Value {
        let path =
            |scopes: &mut dyn Iterator<Item = &Scope>| scopes.map(|scope| scope.name.as_str()).chain([name]).collect::<Vec<_>>().join(".");
        let full = path(&mut self.scopes.iter());
        let stream = path(&mut self.scopes.iter().filter(|scope| scope.part.is_none()));
        let part = self.scopes.iter().rev().find_map(|scope| scope.part).unwrap_or(0);
        let count = dims.iter().product::<i64>() as usize;
        let bytes = match self.options.weights {
            Weights::Random => fill(Stream::new(self.options.seed, &stream), part * count as u64, count).into(),
            Weights::Zeros => self.blank.zeros(count),
            Weights::Outlines => self.blank.outline(count),
        };
        self.initializer(full, Element::F32, dims, bytes)
    }

    /// A tensor fixed by the network's definition. Equal constants share one initializer.
    pub(crate) fn constant(&mut self, element: Element, dims: &[i64], bytes: Vec<u8>) -> Value {
        let key = (element, dims.to_vec(), bytes);
        if let Some(value) = self.constants.get(&key) {
            return value.clone();
        }
        let name = format!("constant_{}", self.constants.len());
        let value = self.initializer(name, element, dims, key.2.clone().into());
        self.constants.insert(key, value.clone());
        value
    }

    /// A single number.
    pub(crate) fn scalar(&mut self, value: f32) -> Value {
        self.constant(Element::F32, &[], value.to_le_bytes().to_vec())
    }

    /// A vector of integers.
    pub(crate) fn ints(&mut self, values: &[i64]) -> Value {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(Element::I64, &[values.len() as i64], bytes)
    }

    fn initializer(&mut self, name: String, element: Element, dims: &[i64], bytes: Bytes) -> Value {
        assert!(self.weight_names.insert(name.clone()), "two initializers are named `{name}`");
        self.initializers.push(TensorProto {
            dims: dims.to_vec(),
            data_type: Some(element.code()),
            name: Some(name.clone()),
            raw_data: Some(bytes),
            ..TensorProto::default()
        });
        Value { name, element, shape: fixed(dims) }
    }

    /// Adds a node with one result.
    pub(crate) fn node(&mut self, op: &str, inputs: &[&Value], attributes: Vec<AttributeProto>, element: Element, shape: Shape) -> Value {
        let mut results = self.node_with_results(op, inputs, attributes, vec![(element, shape)]);
        results.pop().expect("one shape gives one result")
    }

    /// Adds a node with one result for each of `types`.
    pub(crate) fn node_with_results(
        &mut self,
        op: &str,
        inputs: &[&Value],
        attributes: Vec<AttributeProto>,
        types: Vec<(Element, Shape)>,
    ) -> Vec<Value> {
        let path: String = self.scopes.iter().map(|scope| format!("/{}", scope.name)).collect();
        let mut name = format!("{path}/{op}");
        let seen = self.node_names.entry(name.clone()).or_insert(0);
        if *seen > 0 {
            name = format!("{name}_{seen}");
        }
        *seen += 1;
        let results: Vec<_> = types
            .into_iter()
            .enumerate()
            .map(|(index, (element, shape))| Value { name: format!("{name}_output_{index}"), element, shape })
            .collect();
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|value| value.name.clone()).collect(),
            output: results.iter().map(|value| value.name.clone()).collect(),
            name: Some(name),
            op_type: Some(op.to_owned()),
            attribute: attributes,
            ..NodeProto::default()
        });
        self.values.extend(results.iter().map(shape::value_info));
        results
    }

    /// The finished model. Each output keeps its value but gets its given name.
    pub(crate) fn finish(mut self, entry: &Entry, inputs: &[Value], outputs: Vec<(String, Value)>) -> ModelProto {
        let mut renamed = FxHashMap::default();
        let mut declared = Vec::new();
        for (name, value) in outputs {
            declared.push(shape::value_info(&Value { name: name.clone(), ..value.clone() }));
            let before = renamed.insert(value.name, name);
            assert!(before.is_none(), "one value is two outputs");
        }
        for node in &mut self.nodes {
            for name in node.input.iter_mut().chain(&mut node.output) {
                if let Some(new) = renamed.get(name) {
                    name.clone_from(new);
                }
            }
        }
        for input in inputs {
            assert!(declared.iter().all(|output| output.name() != input.name), "an output is named like an input");
        }
        self.values.retain(|value| !renamed.contains_key(value.name()));
        let mut given: Vec<_> = inputs.iter().map(shape::value_info).collect();
        if self.options.dynamic_field {
            self.values.clear();
            given.iter_mut().for_each(|input| shape::open_field(input, true));
            declared.iter_mut().for_each(|output| shape::open_field(output, false));
        }
        ModelProto {
            ir_version: Some(IR_VERSION),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
            producer_name: Some("regraft-zoo".to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            doc_string: Some(format!("{} Source: {}.", entry.summary, entry.source)),
            graph: Some(GraphProto {
                node: self.nodes,
                name: Some(entry.name.to_owned()),
                initializer: self.initializers,
                input: given,
                output: declared,
                value_info: self.values,
                ..GraphProto::default()
            }),
            metadata_props: vec![StringStringEntryProto {
                key: Some("regraft.zoo.seed".to_owned()),
                value: Some(self.options.seed.to_string()),
            }],
            ..ModelProto::default()
        }
    }
}
