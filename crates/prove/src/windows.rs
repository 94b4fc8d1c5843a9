//! Whether the windows of a graph fit into their images wherever another graph runs.
//!
//! A window that is larger than its padded image has no place in it, and a convolution refuses such
//! an image. A pool does not always: ONNX Runtime rounds the number of its steps towards 0, so one
//! with a stride above 1 makes a single window of what is there. So a graph in which a pool was
//! replaced may not run where the original does, at sizes that symbols leave open.

use regraft_ir::{Dim, Graph, Node, Op};

/// The windows of one node along one spatial axis.
struct Steps {
    /// Positions of the padded image beyond the first window: at least 0 where it fits.
    room: Dim,
    stride: i64,
    /// Whether images without room are run all the same.
    lenient: bool,
}

impl Steps {
    /// Whether the window fits wherever the node runs, and has a result that is not empty.
    fn implies_fit(&self) -> bool {
        !self.lenient || self.stride == 1
    }
}

/// Windows of all axes; none for other operators.
fn steps(graph: &Graph, node: &Node) -> Vec<Steps> {
    let ty = |at: usize| node.inputs.get(at).and_then(|value| graph.ty(*value));
    let Some(image) = ty(0) else { return Vec::new() };
    let from = |kernel: &[i64], strides: &[i64], pads: &[i64], dilations: &[i64], lenient| {
        let rank = kernel.len();
        let axis = |at: usize| {
            let (extent, pads) = (dilations.get(at)? * (kernel[at] - 1) + 1, pads.get(at)? + pads.get(rank + at)?);
            Some(Steps { room: image.shape.get(at + 2)?.clone() + Dim::from(pads - extent), stride: *strides.get(at)?, lenient })
        };
        (0..rank).filter_map(axis).collect()
    };
    match &node.op {
        Op::Conv(op) => {
            let kernel: Option<Vec<i64>> = ty(1).and_then(|weights| weights.shape.iter().skip(2).map(Dim::known).collect());
            kernel.map_or(Vec::new(), |kernel| from(&kernel, &op.strides, &op.pads, &op.dilations, false))
        }
        Op::MaxPool(op) => from(&op.kernel, &op.strides, &op.pads, &op.dilations, true),
        Op::AveragePool(op) => from(&op.kernel, &op.strides, &op.pads, &op.dilations, true),
        _ => Vec::new(),
    }
}

/// Fails if a window of `after` is not shown to fit where `before` runs with values that are not
/// empty.
pub(crate) fn fit(before: &Graph, after: &Graph) -> Result<(), String> {
    let mut known = None;
    for id in after.ids() {
        let node = after.node(id);
        for own in steps(after, node).iter().filter(|own| !own.room.at_least(0)) {
            let known = known.get_or_insert_with(|| Known::of(before));
            if !known.show(own) {
                return Err(format!("the window of {} may be larger than its image, {} positions short", node.op.kind().name(), own.room));
            }
        }
    }
    Ok(())
}

/// What the nodes of a graph tell of sizes where it runs.
struct Known {
    steps: Vec<Steps>,
    /// Sizes of values, which are at least 1.
    sizes: Vec<Dim>,
}

impl Known {
    fn of(graph: &Graph) -> Known {
        let steps = graph.ids().flat_map(|id| steps(graph, graph.node(id))).collect();
        let types = graph.ids().flat_map(|id| graph.node(id).types.iter().flatten());
        let mut sizes: Vec<Dim> = types.flat_map(|ty| ty.shape.iter()).filter(|size| size.known().is_none()).cloned().collect();
        sizes.sort_unstable();
        sizes.dedup();
        Known { steps, sizes }
    }

    fn show(&self, own: &Steps) -> bool {
        let beyond = |room: &Dim, times: i64| (own.room.clone() - Dim::from(times) * room.clone()).at_least(0);
        // The same windows in both graphs run at the same sizes, also where they do not fit.
        let same = |other: &Steps| own.lenient && other.lenient && own.stride == other.stride && own.room == other.room;
        // A window of windows has their room many times over. Sizes do not: that of a pool without
        // room is 1 where it runs, and not what its type says.
        let implied = |other: &Steps| other.implies_fit() && [1, own.stride].into_iter().any(|times| beyond(&other.room, times));
        self.steps.iter().any(|other| same(other) || implied(other))
            || self.sizes.iter().any(|size| beyond(&(size.clone() - Dim::from(1)), 1))
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::Graph;
    use regraft_ir::text::parse;

    use super::fit;
    use crate::equal;

    fn graph(height: &str, body: &str) -> Graph {
        parse(&format!("graph (x: f32[N,2,{height},9]) {{ const w: f32[2,1,3,1] = 1\n const t: f32[] = 3\n output {body} as y }}")).unwrap()
    }

    #[test]
    fn a_pool_runs_where_a_convolution_does_not() {
        let pool = |stride| {
            format!(
                "AveragePool(x, kernel=[3,1], strides=[{stride},1], pads=[0,0,0,0], dilations=[1,1], ceil_mode=false, count_include_pad=false)"
            )
        };
        let conv = |stride| format!("Div(Conv(x, w, strides=[{stride},1], pads=[0,0,0,0], dilations=[1,1], group=2), t)");
        let proved = |height, a: &str, b: &str| equal(&graph(height, a), &graph(height, b)).is_proved();
        assert!(!proved("H", &pool(3), &conv(3)), "at a height of 2");
        assert!(proved("H", &conv(3), &pool(3)));
        assert!(proved("H", &pool(1), &conv(1)), "without a window there is no result");
        assert!(proved("2*H+1", &pool(3), &conv(3)));
        assert!(proved("8", &pool(3), &conv(3)));
        let why = fit(&graph("H", &pool(3)), &graph("H", &conv(3))).unwrap_err();
        assert!(why.contains("window of Conv") && why.contains("H - 3"), "{why}");
    }

    #[test]
    fn the_same_windows_fit_at_the_same_sizes() {
        let of = |x, stride| format!("MaxPool({x}, kernel=[3,1], strides=[{stride},1], pads=[0,0,0,0], dilations=[1,1], ceil_mode=false)");
        let max = |stride| of("x", stride);
        let apart = |a: &str, b: &str| fit(&graph("H", a), &graph("H", b)).is_err();
        assert!(!apart(&max(2), &of("Relu(x)", 2)));
        assert!(apart(&max(2), &max(3)));
        assert!(!apart(&max(1), &max(3)));
    }
}
