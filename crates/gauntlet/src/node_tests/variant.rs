//! The forms a case is converted to before it is read.

use std::collections::HashSet;

use prost::Message;
use regraft_onnx::proto::tensor_shape_proto::dimension;
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto, TypeProto, type_proto};
use regraft_runtime::{Feeds, HostTensor};

use super::case::{Case, DataSet};

/// The first IR version whose initializers need not be listed among the inputs.
const IR_OWN_INITIALIZERS: i64 = 4;

/// A form of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Unchanged.
    AsIs,
    /// All inputs but the first are initializers.
    Initializers,
    /// Every declared size is a symbol of its own.
    Symbolic,
    /// Intermediate values have no declared types.
    Stripped,
}

/// A model and what to feed it.
pub struct Prepared {
    /// The model.
    pub bytes: Vec<u8>,
    /// Inputs of each run; `None` if one cannot be fed.
    pub feeds: Option<Vec<Feeds>>,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 4] = [Variant::AsIs, Variant::Initializers, Variant::Symbolic, Variant::Stripped];

    /// The printed name.
    pub fn name(self) -> &'static str {
        match self {
            Variant::AsIs => "as is",
            Variant::Initializers => "inputs as initializers",
            Variant::Symbolic => "all dims symbolic",
            Variant::Stripped => "value_info stripped",
        }
    }

    /// The case in this form.
    pub fn prepare(self, case: &Case) -> Prepared {
        let mut model = case.model.clone();
        let mut fixed = HashSet::new();
        // Initializers hold the values of one set.
        let sets = if self == Variant::Initializers { &case.sets[..case.sets.len().min(1)] } else { &case.sets };
        match self {
            Variant::AsIs => {}
            Variant::Initializers => fixed = sets.first().map_or_else(HashSet::new, |set| fix(&mut model, set)),
            Variant::Symbolic => open(&mut model),
            Variant::Stripped => model.graph.iter_mut().for_each(strip),
        }
        Prepared { bytes: model.encode_to_vec(), feeds: feeds(&case.model, sets, &fixed) }
    }
}

/// Turns all tensor inputs but the first into initializers; returns their names.
fn fix(model: &mut ModelProto, set: &DataSet) -> HashSet<String> {
    let listed = model.ir_version() < IR_OWN_INITIALIZERS;
    let Some(graph) = &mut model.graph else { return HashSet::new() };
    let mut fixed = HashSet::new();
    for (info, datum) in graph.input.iter().zip(&set.inputs).skip(1) {
        let Some(tensor) = &datum.proto else { continue };
        if graph.initializer.iter().all(|t| t.name() != info.name()) {
            graph.initializer.push(TensorProto { name: info.name.clone(), ..tensor.clone() });
        }
        fixed.insert(info.name().to_string());
    }
    if !listed {
        graph.input.retain(|info| !fixed.contains(info.name()));
    }
    fixed
}

/// Makes every declared size of inputs, outputs and intermediate values a symbol that occurs once.
pub fn open(model: &mut ModelProto) {
    let Some(graph) = &mut model.graph else { return };
    let mut count = 0;
    for info in graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info) {
        info.r#type.iter_mut().for_each(|ty| open_type(ty, &mut count));
    }
}

fn open_type(ty: &mut TypeProto, count: &mut usize) {
    match &mut ty.value {
        Some(type_proto::Value::TensorType(tensor)) => {
            for dim in tensor.shape.iter_mut().flat_map(|s| &mut s.dim) {
                dim.value = Some(dimension::Value::DimParam(format!("size{count}")));
                *count += 1;
            }
        }
        Some(type_proto::Value::SequenceType(of)) => of.elem_type.iter_mut().for_each(|ty| open_type(ty, count)),
        Some(type_proto::Value::OptionalType(of)) => of.elem_type.iter_mut().for_each(|ty| open_type(ty, count)),
        _ => {}
    }
}

/// Removes the types of intermediate values, including those in bodies.
pub fn strip(graph: &mut GraphProto) {
    graph.value_info.clear();
    for attribute in graph.node.iter_mut().flat_map(|n| &mut n.attribute) {
        attribute.g.iter_mut().for_each(strip);
        attribute.graphs.iter_mut().for_each(strip);
    }
}

fn feeds(model: &ModelProto, sets: &[DataSet], fixed: &HashSet<String>) -> Option<Vec<Feeds>> {
    let graph = model.graph.as_ref()?;
    let fed = |set: &DataSet| -> Option<Feeds> {
        let inputs = graph.input.iter().zip(&set.inputs).filter(|(info, _)| !fixed.contains(info.name()));
        inputs
            .map(|(info, datum)| Some((info.name().to_string(), datum.host.clone()?)))
            .collect::<Option<Vec<(String, HostTensor)>>>()
            .map(|all| all.into_iter().collect())
    };
    sets.iter().map(fed).collect()
}
