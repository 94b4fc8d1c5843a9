//! The graph that OpenVINO runs, out of two things that it tells: the model as it was compiled,
//! whose layers name what they were made from, and the list of the nodes that run, in which
//! whatever was fused into a node follows it.

use std::collections::HashMap;

use roxmltree::{Document, Node};

use super::native::Counter;
use crate::{OptimizedGraph, OptimizedNode};

/// How the list calls the kernel of a node that was fused into the one before it.
const FUSED: &str = "undef";

/// One layer of a compiled model.
struct Layer {
    kind: String,
    origins: Vec<String>,
    /// The names of each output, the first one being what it goes by here.
    outputs: Vec<(u32, Vec<String>)>,
    /// For each input, the layer and the port that it comes from.
    inputs: Vec<(u32, usize, u32)>,
    name: String,
}

impl Layer {
    fn of(node: Node<'_, '_>) -> Option<Layer> {
        let name = node.attribute("name")?.to_owned();
        let kind = node.attribute("type")?.to_owned();
        let origins = node
            .children()
            .filter(|c| c.has_tag_name("rt_info"))
            .flat_map(|info| info.children())
            .find(|c| c.attribute("name") == Some("fused_names"))
            .and_then(|c| c.attribute("value"))
            .map_or(Vec::new(), |names| names.split(", ").map(str::to_owned).collect());
        let ports = node.children().filter(|c| c.has_tag_name("output")).flat_map(|o| o.children()).filter(Node::is_element);
        let outputs = ports
            .filter_map(|port| {
                let id: u32 = port.attribute("id")?.parse().ok()?;
                let mut names = port.attribute("names").map_or(Vec::new(), split_names);
                if names.is_empty() {
                    names.push(format!("{name}:{id}"));
                }
                Some((id, names))
            })
            .collect();
        Some(Layer { kind, origins, outputs, inputs: Vec::new(), name })
    }

    /// The name of what leaves a port.
    fn output(&self, port: u32) -> Option<&str> {
        self.outputs.iter().find(|(id, _)| *id == port).map(|(_, names)| names[0].as_str())
    }
}

/// Names that are separated by commas, and may hold escaped ones.
fn split_names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => names.last_mut().into_iter().for_each(|name| name.extend(characters.next())),
            ',' => names.push(String::new()),
            _ => names.last_mut().into_iter().for_each(|name| name.push(c)),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// ONNX's operator for a type of layer, where there is one that means the same.
fn operator(kind: &str) -> &str {
    match kind {
        "Convolution" | "GroupConvolution" => "Conv",
        "ConvolutionBackpropData" | "GroupConvolutionBackpropData" => "ConvTranspose",
        "FullyConnected" => "MatMul",
        "Subtract" => "Sub",
        "Multiply" => "Mul",
        "Divide" => "Div",
        "Power" => "Pow",
        "Maximum" => "Max",
        "Minimum" => "Min",
        "ReLU" => "Relu",
        "PReLU" => "PRelu",
        "HSwish" => "HardSwish",
        "SoftMax" => "Softmax",
        "AvgPool" => "AveragePool",
        "MVN" => "LayerNormalization",
        "Convert" => "Cast",
        "VariadicSplit" => "Split",
        "Interpolate" => "Resize",
        "StridedSlice" => "Slice",
        other => other,
    }
}

/// A compiled model.
pub struct Exported {
    layers: Vec<Layer>,
}

impl Exported {
    /// Reads its XML.
    ///
    /// # Errors
    ///
    /// It is malformed.
    pub fn parse(text: &str) -> Result<Exported, String> {
        let document = Document::parse(text).map_err(|e| e.to_string())?;
        let child = |name: &str| document.root_element().children().find(|c| c.has_tag_name(name));
        let mut layers = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for node in child("layers").into_iter().flat_map(|l| l.children()).filter(Node::is_element) {
            if let (Some(layer), Some(id)) = (Layer::of(node), node.attribute("id")) {
                places.insert(id, layers.len());
                layers.push(layer);
            }
        }
        for edge in child("edges").into_iter().flat_map(|e| e.children()).filter(Node::is_element) {
            let port = |name| edge.attribute(name).and_then(|p| p.parse::<u32>().ok());
            let layer = |name| edge.attribute(name).and_then(|id| places.get(id).copied());
            if let (Some(from), Some(out), Some(to), Some(at)) =
                (layer("from-layer"), port("from-port"), layer("to-layer"), port("to-port"))
            {
                layers[to].inputs.push((at, from, out));
            }
        }
        layers.iter_mut().for_each(|layer| layer.inputs.sort_unstable());
        Ok(Exported { layers })
    }

    /// The nodes that run, given the list of them: one for each entry that was not fused.
    pub fn graph(&self, counters: &[Counter]) -> OptimizedGraph {
        let layers: HashMap<&str, usize> = self.layers.iter().enumerate().map(|(at, l)| (l.name.as_str(), at)).collect();
        let mut graph = OptimizedGraph::default();
        // Layers that read a reordered value: the layer's input, and what it reads instead.
        let mut reordered: HashMap<(usize, usize), String> = HashMap::new();
        for group in groups(counters) {
            if let (None, Some((from, to))) = (layers.get(group[0].name.as_str()), self.between(&layers, &group[0].name)) {
                reordered.insert((from, to), group[0].name.clone());
            }
        }
        for group in groups(counters) {
            let main = &group[0];
            let members: Vec<usize> = group.iter().filter_map(|entry| layers.get(entry.name.as_str()).copied()).collect();
            if !layers.contains_key(main.name.as_str()) {
                let ends = self.between(&layers, &main.name);
                graph.nodes.push(OptimizedNode {
                    name: main.name.clone(),
                    op_type: main.kind.clone(),
                    domain: DOMAIN.into(),
                    inputs: ends.and_then(|(from, _)| self.layers[from].outputs.first()).map(|(_, n)| n[0].clone()).into_iter().collect(),
                    outputs: vec![main.name.clone()],
                    captures: Vec::new(),
                    origins: Vec::new(),
                });
                continue;
            }
            let kind = operator(&self.layers[members[0]].kind);
            if matches!(kind, "Parameter" | "Result" | "Const") {
                continue;
            }
            let mut node = OptimizedNode {
                name: main.name.clone(),
                op_type: kind.to_owned(),
                domain: DOMAIN.into(),
                inputs: Vec::new(),
                outputs: Vec::new(),
                captures: Vec::new(),
                origins: Vec::new(),
            };
            for at in &members {
                let layer = &self.layers[*at];
                for (_, from, port) in &layer.inputs {
                    if members.contains(from) {
                        continue;
                    }
                    let read = reordered.get(&(*from, *at)).map(String::as_str).or_else(|| self.layers[*from].output(*port));
                    node.inputs.extend(read.map(str::to_owned));
                }
                node.outputs.extend(layer.outputs.iter().flat_map(|(_, names)| names.iter().cloned()));
                node.origins.extend(layer.origins.iter().filter(|name| !node.origins.contains(name)).cloned().collect::<Vec<_>>());
            }
            graph.nodes.push(node);
        }
        for layer in &self.layers {
            let list = match layer.kind.as_str() {
                "Const" => &mut graph.initializers,
                "Parameter" => &mut graph.inputs,
                _ => continue,
            };
            list.extend(layer.outputs.iter().map(|(_, names)| names[0].clone()));
        }
        graph
    }

    /// The layers on both sides of a node that was inserted, whose name joins theirs:
    /// `conv1_abcd_acdb_conv2`.
    fn between(&self, layers: &HashMap<&str, usize>, name: &str) -> Option<(usize, usize)> {
        let cuts = || name.match_indices('_').map(|(at, _)| at);
        let from = cuts().rev().find_map(|at| layers.get(&name[..at]))?;
        let to = cuts().find_map(|at| layers.get(&name[at + 1..]))?;
        Some((*from, *to))
    }
}

/// Operators that are not ONNX's.
const DOMAIN: &str = "openvino";

/// Entries that run, each with what was fused into it.
fn groups(counters: &[Counter]) -> impl Iterator<Item = &[Counter]> {
    counters.chunk_by(|_, next| next.kernel == FUSED)
}

/// Whether an entry has a time of its own.
pub fn runs(counter: &Counter) -> bool {
    counter.kernel != FUSED && !matches!(counter.kind.as_str(), "Parameter" | "Input" | "Result" | "Output" | "Const" | "Constant")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str, kind: &str, kernel: &str) -> Counter {
        Counter { name: name.into(), kind: kind.into(), kernel: kernel.into(), micros: 1 }
    }

    const MODEL: &str = r#"<net name="m" version="11"><layers>
        <layer id="0" name="x" type="Parameter"><output><port id="0" names="x"/></output></layer>
        <layer id="1" name="w" type="Const"><output><port id="0"/></output></layer>
        <layer id="2" name="Multiply_7" type="Convolution">
            <rt_info><attribute name="fused_names" version="0" value="bn, conv"/></rt_info>
            <input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
        <layer id="3" name="act" type="ReLU">
            <rt_info><attribute name="fused_names" version="0" value="act"/></rt_info>
            <input><port id="0"/></input><output><port id="1" names="a\,b,c"/></output></layer>
        <layer id="4" name="y/sink" type="Result"><input><port id="0"/></input></layer>
        </layers><edges>
        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
        <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
        <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        <edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
        </edges></net>"#;

    #[test]
    fn what_runs_knows_what_it_was_made_from() {
        let counters = [
            counter("x", "Parameter", "unknown_f32"),
            counter("x_abcd_acdb_Multiply_7", "Reorder", "jit"),
            counter("Multiply_7", "Convolution", "brgconv"),
            counter("act", "Relu", FUSED),
        ];
        let graph = Exported::parse(MODEL).unwrap().graph(&counters);
        let [reorder, conv] = graph.nodes.as_slice() else { panic!("{graph:?}") };
        assert_eq!((reorder.op_type.as_str(), reorder.inputs.as_slice()), ("Reorder", &["x".to_owned()][..]));
        assert_eq!((conv.op_type.as_str(), conv.name.as_str()), ("Conv", "Multiply_7"));
        assert_eq!(conv.inputs, ["x_abcd_acdb_Multiply_7", "w:0"]);
        assert_eq!(conv.origins, ["bn", "conv", "act"]);
        assert!(conv.outputs.contains(&"a,b".to_owned()) && conv.outputs.contains(&"c".to_owned()));
        assert_eq!((graph.inputs, graph.initializers), (vec!["x".to_owned()], vec!["w:0".to_owned()]));
        assert!(Exported::parse("<net").is_err());
    }
}
