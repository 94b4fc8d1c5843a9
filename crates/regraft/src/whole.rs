//! Integer inputs that may have any value: none of theirs becomes an index, a size or a divisor.

use std::collections::{BTreeSet, HashMap, HashSet};

use regraft_ir::{Class, Graph, NodeId, Op, OpKind, ValueId};

/// Names of these inputs. An input counts as bound where what becomes of it is not known.
pub fn free_integers(graph: &Graph) -> BTreeSet<String> {
    let mut readers: HashMap<ValueId, Vec<(NodeId, usize)>> = HashMap::new();
    for id in graph.ids() {
        for (at, value) in graph.node(id).inputs.iter().enumerate() {
            readers.entry(*value).or_default().push((id, at));
        }
    }
    let inputs = graph.inputs().iter().filter_map(|id| match &graph.node(*id).op {
        Op::Input(input) if input.ty.dtype.class() == Class::Int => Some((*id, input.name.to_string())),
        _ => None,
    });
    inputs.filter(|(id, _)| is_free(graph, &readers, id.out())).map(|(_, name)| name).collect()
}

fn is_free(graph: &Graph, readers: &HashMap<ValueId, Vec<(NodeId, usize)>>, input: ValueId) -> bool {
    let (mut seen, mut open) = (HashSet::from([input]), vec![input]);
    while let Some(value) = open.pop() {
        let real = graph.ty(value).is_some_and(|ty| ty.dtype.class() == Class::Real);
        for (id, at) in readers.get(&value).into_iter().flatten() {
            let node = graph.node(*id);
            if !real && !takes_any(node.op.kind(), *at) {
                return false;
            }
            // The size of a tensor does not depend on what is in it.
            if matches!(node.op.kind(), OpKind::Shape | OpKind::Size) {
                continue;
            }
            let results = (0..node.types.len()).map(|port| ValueId { node: *id, port: port as _ });
            open.extend(results.filter(|result| seen.insert(*result)));
        }
    }
    true
}

/// Whether an operator takes any integer as its operand number `at`.
fn takes_any(kind: OpKind, at: usize) -> bool {
    use OpKind::*;
    match kind {
        Div | Mod | Pow | Gather => at == 0,
        Add | Sub | Mul | Sum | Max | Min | Mean | Equal | Greater | GreaterOrEqual | Less | LessOrEqual | And | Or | Xor | Not | Where => {
            true
        }
        Neg | Abs | Sign | Relu | Clip | Cast | Identity | Dropout | Concat | Split | Slice | Transpose | Reshape | Flatten => true,
        Squeeze | Unsqueeze | Expand | Tile | Pad | Shape | Size | MatMul | Gemm | Einsum | MaxPool | ArgMax | ArgMin => true,
        ReduceSum | ReduceMean | ReduceMax | ReduceMin | ReduceProd | ReduceL1 | ReduceL2 | ReduceSumSquare => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(text: &str) -> Vec<String> {
        free_integers(&regraft_ir::text::parse(text).expect("a graph")).into_iter().collect()
    }

    #[test]
    fn indices_and_divisors_are_bound() {
        let text = "graph g (x: f32[4,3], i: i64[2], j: i64[2], k: i64[2], d: i64[2]) {
          a = Add(i, j)
          y = Gather(x, a, axis=0)
          z = Div(k, d)
          output y
          output z
        }";
        assert_eq!(free(text), ["k"]);
    }

    #[test]
    fn what_becomes_a_float_and_an_index_again_is_bound() {
        let text = "graph g (x: f32[4,3], i: i32[2], j: i32[2]) {
          a = Cast(i, to=f32)
          b = Sqrt(a)
          c = Cast(b, to=i64)
          y = Gather(x, c, axis=0)
          d = Cast(j, to=f32)
          z = Sqrt(d)
          output y
          output z
        }";
        assert_eq!(free(text), ["j"]);
    }
}
