//! Nodes that compute symbolic sizes at run time from the shapes of values that carry the symbols.

use std::collections::HashMap;

use regraft_ir::dim::{Arithmetic, Factor};
use regraft_ir::{Carrier, Const, DType, Dim, Graph, ValueId};

use crate::emit::Emitter;

/// Tensors of one `int64` element, by the size they hold.
#[derive(Default)]
pub(crate) struct SizeNodes {
    made: HashMap<Dim, String>,
    shapes: HashMap<String, String>,
}

impl Emitter<'_> {
    /// The name of a 1-D `int64` tensor of these sizes; `Err` holds a symbol that nothing carries.
    pub(crate) fn sizes(&mut self, graph: &Graph, sizes: &[Dim]) -> Result<String, String> {
        let numbers: Option<Vec<i64>> = sizes.iter().map(Dim::known).collect();
        if let Some(numbers) = numbers {
            return Ok(self.ints(&numbers));
        }
        let parts: Vec<String> = sizes.iter().map(|d| self.size(graph, d)).collect::<Result<_, _>>()?;
        if let [one] = parts.as_slice() {
            return Ok(one.clone());
        }
        let inputs: Vec<&str> = parts.iter().map(String::as_str).collect();
        Ok(self.computed("Concat", &inputs, &[("axis", 0)]))
    }

    fn size(&mut self, graph: &Graph, size: &Dim) -> Result<String, String> {
        if let Some(name) = self.size_nodes.made.get(size) {
            return Ok(name.clone());
        }
        let name = match graph.bearer(size) {
            Some((value, axis)) => self.axis(value, axis),
            None => size.compute(&mut Sizer { emitter: self, graph })?,
        };
        self.size_nodes.made.insert(size.clone(), name.clone());
        Ok(name)
    }

    fn factor(&mut self, graph: &Graph, factor: &Factor<'_>) -> Result<String, String> {
        match factor {
            Factor::Symbol(symbol) => {
                let Carrier { value, axis, factor, offset } = graph.carrier(symbol).ok_or_else(|| symbol.to_string())?;
                let mut size = self.axis(value, axis);
                if offset != 0 {
                    let offset = self.ints(&[offset]);
                    size = self.computed("Sub", &[&size, &offset], &[]);
                }
                if factor != 1 {
                    let factor = self.ints(&[factor]);
                    size = self.computed("Div", &[&size, &factor], &[]);
                }
                Ok(size)
            }
            Factor::FloorDiv(a, b) => {
                let (x, y) = (self.size(graph, a)?, self.size(graph, b)?);
                if a.at_least(0) && b.at_least(1) {
                    return Ok(self.computed("Div", &[&x, &y], &[]));
                }
                // ONNX division truncates; first subtracting the modulus (with the divisor's sign)
                // gives the floor.
                let rest = self.computed("Mod", &[&x, &y], &[]);
                let whole = self.computed("Sub", &[&x, &rest], &[]);
                Ok(self.computed("Div", &[&whole, &y], &[]))
            }
            Factor::Broadcast(a, b) => {
                let (x, y) = (self.size(graph, a)?, self.size(graph, b)?);
                let one = self.ints(&[1]);
                let is_one = self.computed("Equal", &[&x, &one], &[]);
                Ok(self.computed("Where", &[&is_one, &y, &x], &[]))
            }
        }
    }

    /// The size of a value's axis.
    fn axis(&mut self, value: ValueId, axis: usize) -> String {
        let carrier = self.names.get(value).to_string();
        let shape = match self.size_nodes.shapes.get(&carrier) {
            Some(shape) => shape.clone(),
            None => {
                let shape = self.computed("Shape", &[&carrier], &[]);
                self.size_nodes.shapes.insert(carrier, shape.clone());
                shape
            }
        };
        let axis = self.ints(&[axis as i64]);
        self.computed("Gather", &[&shape, &axis], &[("axis", 0)])
    }

    fn ints(&mut self, values: &[i64]) -> String {
        match Const::from_i64(DType::I64, &[values.len() as i64], values) {
            Some(constant) => self.constant(&constant),
            None => String::new(),
        }
    }
}

/// Computes sizes of a graph by nodes that are emitted.
struct Sizer<'a, 'p> {
    emitter: &'a mut Emitter<'p>,
    graph: &'a Graph,
}

impl Arithmetic for Sizer<'_, '_> {
    type Value = String;
    type Error = String;

    fn number(&mut self, number: i64) -> Result<String, String> {
        Ok(self.emitter.ints(&[number]))
    }

    fn factor(&mut self, factor: &Factor<'_>) -> Result<String, String> {
        self.emitter.factor(self.graph, factor)
    }

    fn product(&mut self, a: String, b: String) -> Result<String, String> {
        Ok(self.emitter.computed("Mul", &[&a, &b], &[]))
    }

    fn sum(&mut self, a: String, b: String) -> Result<String, String> {
        Ok(self.emitter.computed("Add", &[&a, &b], &[]))
    }
}
